"""The maps of whole networks against plain hooks and what torch's dispatcher runs."""

from collections import Counter

import torch

from hookviz.capturing.inputs import prepare
from hookviz.explaining.followed_pass import ExecutionTrace, follow_pass
from hookviz.explaining.map_layout import lay_out
from hookviz.explaining.network_map import ENTRY, EXIT, IMAGE, Part, network_map
from hookviz.hooking.forward_pass import own_shape
from hookviz.types import Model
from tests.data_flow import DataFlow, data_flow
from tests.explaining.test_map_layout import assert_is_drawn_well


def check(model: Model) -> str:
    """Compare a network's map with the pass, and look whether it is drawn well."""
    channels, *sides = own_shape(model)
    side = max(64, model.min_size) if model.min_size > 1 else sides[0]
    image = torch.randn(1, channels, side, side, generator=torch.Generator().manual_seed(0))
    truth = data_flow(model.network, image)
    trace = follow_pass(model, prepare(model, image), joins=True)
    numbers = assert_is_traced(trace, truth)
    whole = network_map(trace)
    assert [part.step for part in whole.leaves()] == [*range(1, len(trace.steps) + 1)]
    assert_lines_are_those_of_the_trace(whole, trace)
    rows = {each: truth.rows[number] for each, number in numbers.items() if number in truth.rows}
    assert_is_drawn_well(lay_out(whole, rows))
    joins = len(trace.steps) - len(truth.calls)
    return f"{len(truth.calls)} layers, {joins} joins (aten {sum(truth.joins.values())}), side {side}"


def assert_is_traced(trace: ExecutionTrace, truth: DataFlow) -> dict[int, int]:
    """Check steps and where they come from; return the layers' numbers among layers alone."""
    layers = [number for number, step in enumerate(trace.steps, 1) if step.kind]
    assert [str(trace.steps[each - 1].address) for each in layers] == list(truth.calls)
    numbers = {each: number for number, each in enumerate(layers, 1)} | {IMAGE: IMAGE}

    def of(sources: frozenset[int]) -> frozenset[int]:
        """Go on through joins to the layers before them."""
        return frozenset().union(
            *(
                {numbers[each]} if each in numbers else of(trace.steps[each - 1].sources)
                for each in sources
            )
        )

    for each in layers:
        step = trace.steps[each - 1]
        assert of(step.sources) == truth.sources[numbers[each] - 1], step
    assert of(trace.output) == truth.output
    joins = Counter(of(step.sources) for step in trace.steps if not step.kind)
    assert joins <= truth.joins
    return numbers


def assert_lines_are_those_of_the_trace(whole: Part, trace: ExecutionTrace) -> None:
    """Check each drawing's lines: those of which one end at least is in it."""
    ways = {(source, to) for to, step in enumerate(trace.steps, 1) for source in step.sources}
    ways |= {(number, len(trace.steps) + 1) for number in trace.output}
    assert_lines(whole, ways)


def assert_lines(part: Part, ways: set[tuple[int, int]]) -> None:
    if not part.parts:
        return
    place = {leaf.step: at for at, each in enumerate(part.parts) for leaf in each.leaves()}
    lines = {(place.get(begin, ENTRY), place.get(end, EXIT)) for begin, end in ways}
    assert set(part.lines) == {
        (begin, end) for begin, end in lines if begin != end and (begin, end) != (ENTRY, EXIT)
    }
    assert len(part.lines) == len(set(part.lines))
    for each in part.parts:
        assert_lines(each, ways)
