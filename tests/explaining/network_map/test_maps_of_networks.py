"""The maps of whole networks, against plain hooks and what torch's dispatcher runs."""

import importlib.util
from collections import Counter

import pytest
import torch

import hookviz
from hookviz.capturing.inputs import own_shape, prepare_input
from hookviz.explaining.network_map.followed_pass import IMAGE, ExecutionTrace, follow_pass
from hookviz.explaining.network_map.layout import ENTRY, EXIT, Part, lay_out, network_map
from hookviz.types import Model
from tests.data_flow import DataFlow, data_flow
from tests.every_network import IN_EVERY_NETWORK
from tests.explaining.network_map.test_layout import assert_is_drawn_well

OF_TIMM = (
    *("cait_xxs24_224", "convit_tiny", "crossvit_tiny_240", "davit_tiny", "dla46_c", "dpn48b"),
    *("edgenext_xx_small", "efficientformer_l1", "fastvit_t8", "focalnet_tiny_srf", "gcvit_xxtiny"),
    *("ghostnet_050", "hiera_tiny_224", "hrnet_w18_small", "levit_128s", "mambaout_femto"),
    *("maxvit_rmlp_pico_rw_256", "mixer_s32_224", "mobilevit_xxs", "res2net50_14w_8s"),
    *("resnest14d", "selecsls42", "swin_tiny_patch4_window7_224", "vit_tiny_patch16_224"),
    *("xception41", "xcit_nano_12_p16_224"),
)


def assert_map_is_the_pass(model: Model, side: int) -> None:
    """Compare a network's map with the pass, and look whether it is drawn well."""
    image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    truth = data_flow(model.network, image)
    trace = follow_pass(model, prepare_input(model, image), joins=True)
    numbers = assert_is_traced(trace, truth)
    whole = network_map(trace)
    assert [part.step for part in whole.leaves()] == [*range(1, len(trace.steps) + 1)]
    ways = {(source, to) for to, step in enumerate(trace.steps, 1) for source in step.sources}
    assert_lines_are(whole, ways | {(number, len(trace.steps) + 1) for number in trace.output})
    rows = {each: truth.rows[number] for each, number in numbers.items() if number in truth.rows}
    assert_is_drawn_well(lay_out(whole, rows))


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


def assert_lines_are(part: Part, ways: set[tuple[int, int]]) -> None:
    """Check that a drawing has a line for each way of which one end at least is in it."""
    place = {leaf.step: at for at, each in enumerate(part.parts) for leaf in each.leaves()}
    lines = {(place.get(begin, ENTRY), place.get(end, EXIT)) for begin, end in ways}
    expected = {line for line in lines if line != (ENTRY, EXIT) and line[0] != line[1]}
    assert Counter(part.lines) == Counter(expected), part.address
    for each in part.parts:
        if each.parts:
            assert_lines_are(each, ways)


@pytest.mark.parametrize("name", ["squeezenet", "shapesvit", "googlenet", "swin_v2_t"])
def test_a_network_s_map_is_its_pass(name: str) -> None:
    model = hookviz.load_model(name, "random")
    assert_map_is_the_pass(model, max(64, model.min_size))


@pytest.mark.sweep("by day one of branches, one that attends, one of both: the test above")
@IN_EVERY_NETWORK
def test_every_network_s_map_is_its_pass(of_catalog: Model) -> None:
    assert_map_is_the_pass(of_catalog, max(64, of_catalog.min_size))


@pytest.mark.sweep("by day torchvision's: the first test")
@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
@pytest.mark.filterwarnings("ignore")  # timm's own
@pytest.mark.parametrize("name", OF_TIMM)
def test_a_network_of_timm_s_map_is_its_pass(name: str) -> None:
    model = hookviz.load_model(f"timm/{name}", "random")
    assert_map_is_the_pass(model, own_shape(model)[1])
