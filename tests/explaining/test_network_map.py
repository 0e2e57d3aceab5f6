import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.followed_pass import IMAGE, ExecutionTrace, follow_pass
from hookviz.explaining.network_map import ENTRY, EXIT, Part, network_map
from hookviz.types import Model
from tests.networks import as_model, seeded


class Branches(nn.Module):
    """A block with a shortcut that runs twice, a concatenation with the image, and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(nn.ReLU(), nn.Conv2d(3, 3, 1)))
        self.last = nn.Conv2d(6, 4, 1)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        once = self.block(images)
        twice = self.block(once) + once
        maps = self.last(torch.cat([twice, images], 1))
        tokens = maps.flatten(2).transpose(1, 2)
        mixed: Tensor = self.attention(tokens, tokens, tokens)[0]
        return mixed


def traced(model: Model, image: object) -> ExecutionTrace:
    return follow_pass(model, prepare(model, image), joins=True)


def test_joins_are_steps_and_attention_is_one(noise: Tensor) -> None:
    trace = traced(as_model(seeded(Branches)), noise)
    names = [str(step.address) for step in trace.steps]
    assert names == [
        *("block.0", "block.1.0", "block.1.1", "block.0#1", "block.1.0#1", "block.1.1#1"),
        *("add", "cat", "last", "attention"),
    ]
    sources = [set(step.sources) for step in trace.steps]
    assert sources == [{IMAGE}, {1}, {2}, {3}, {4}, {5}, {6, 3}, {7, IMAGE}, {8}, {9}]
    assert set(trace.output) == {10}


def test_blocks_hold_what_ran_in_them_and_lines_pass_their_borders(noise: Tensor) -> None:
    whole = network_map(traced(as_model(seeded(Branches)), noise), "Branches")
    assert [str(part.address) for part in whole.parts] == [
        *("block", "block#1", "add", "cat", "last", "attention"),
    ]
    assert set(whole.lines) == {
        *((ENTRY, 0), (0, 1), (0, 2), (1, 2), (2, 3), (ENTRY, 3), (3, 4), (4, 5), (5, EXIT)),
    }
    block = whole.parts[0]
    assert set(block.lines) == {(ENTRY, 0), (0, 1), (1, EXIT)}
    assert [str(part.address) for part in block.parts[1].parts] == ["block.1.0", "block.1.1"]


def edges_of(whole: Part) -> set[tuple[int, int]]:
    """Read which step leads to which off a map, through the borders of its blocks."""

    def of(part: Part) -> tuple[set[tuple[int, int]], set[int], set[int]]:
        """Return the edges inside, the steps that take in from outside and those that put out."""
        if not part.parts:
            return set(), {part.step}, {part.step}
        inner = [of(each) for each in part.parts]
        edges = set().union(*(each[0] for each in inner))
        ins, outs = set(), set()
        for begin, end in part.lines:
            for source in inner[begin][2] if begin >= 0 else ():
                edges |= {(source, target) for target in (inner[end][1] if end >= 0 else ())}
            if begin == ENTRY and end >= 0:
                ins |= inner[end][1]
            if end == EXIT and begin >= 0:
                outs |= inner[begin][2]
        return edges, ins, outs

    edges, ins, _ = of(whole)
    return edges | {(IMAGE, step) for step in ins}


def test_what_is_in_the_largest_of_a_few_blocks_lies_beside_the_others(noise: Tensor) -> None:
    features = nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(5)))
    model = as_model(nn.Sequential(features, nn.Sequential(nn.Flatten(), nn.Linear(768, 2))))
    whole = network_map(traced(model, noise))
    names = [str(part.address) for part in whole.parts]
    assert names == ["0.0", "0.1", "0.2", "0.3", "0.4", "1"]


@pytest.mark.parametrize("name", ["shapesnet", "squeezenet"])
def test_every_step_lies_on_the_map_once_and_every_way_is_a_line(name: str) -> None:
    model = hookviz.load_model(name)
    trace = traced(model, "assets/samples/cat.jpg")
    whole = network_map(trace)
    assert [part.step for part in whole.leaves()] == [*range(1, len(trace.steps) + 1)]
    told = {(source, to) for to, step in enumerate(trace.steps, 1) for source in step.sources}
    assert told <= edges_of(whole)
