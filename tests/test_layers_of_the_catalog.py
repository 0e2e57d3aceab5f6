"""Every layer of each network of the catalog, against plain hooks and inputs of three sizes."""

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace
from hookviz.models import architectures, torchvision_models
from hookviz.types import LayerInfo, Model
from tests.capturing.test_axes import shapes_at, told_by_sizes
from tests.every_network import IN_EVERY_NETWORK
from tests.plain_hooks import every_output

OTHER_TASKS = [spec.name for spec in torchvision_models.specs() if spec.task != "classification"]
_MOST = 60  # layers recorded at a time


def image_for(model: Model) -> Tensor:
    shape = own_shape(model)
    if len(shape) == 4:  # of video as little as it takes, since all layers are kept
        shape = (3, 16, 224, 224) if model.min_size == 224 else (3, 8, 64, 64)
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))


def values_are_recorded(model: Model) -> int:
    """Compare what every layer puts out, and its maps, with what plain hooks see of the network."""
    image = image_for(model)
    truth = every_output(model.network, image)
    listed = [info for info in hookviz.list_layers(model, kind="maps") if truth.get(info.name)]
    compared = 0
    for start in range(0, len(listed), _MOST):
        group = listed[start : start + _MOST]
        cap = hookviz.capture(model, image, [info.name for info in group])
        for info in group:
            seen = truth[info.name][0]
            if isinstance(seen, Tensor) and len(seen) != 1:  # a row for each head or box, or none
                assert torch.equal(cap[info.name].raw, seen), info.name
                compared += 1
            elif isinstance(seen, Tensor):
                assert torch.equal(cap[info.name].raw, seen[0]), info.name
                assert torch.equal(cap[info.name].values, as_maps(info, seen[0])), info.name
                compared += 1
    return compared


def as_maps(info: LayerInfo, seen: Tensor) -> Tensor:
    """Lay out by hand what a layer put out, as its description says."""
    if info.layout == "channels last":
        return seen.movedim(-1, 0)
    if info.layout != "tokens":
        return seen
    cells = seen[info.prefix_tokens :]
    return cells.reshape(*info.output_shape[1:], -1).permute(2, 0, 1)


def layouts_are_told_by_sizes(name: str, model: Model) -> int:
    """Compare each layout with what a taller and a wider input say; 0 where one size is taken."""
    side = own_shape(model)[1]
    shapes = []
    for size in ((side, side), (side + 96, side), (side, side + 128)):
        network = architectures.build_without_memory(name, architectures.spec_classes(name))
        try:
            shapes.append(shapes_at(network.eval().to("meta"), *size))
        except (AssertionError, RuntimeError):
            return 0
    own, taller, wider = shapes
    compared = 0
    for info in layer_trace(model, own_shape(model)).every:
        told = told_by_sizes(info.name, own, taller, wider) if info.name in own else None
        if told is not None:
            assert info.layout == told, info
            compared += 1
    return compared


def test_a_transformer_s_layers_are_what_it_computes_and_its_blocks_are_listed() -> None:
    model = hookviz.load_model("swin_t", "random")
    assert values_are_recorded(model) > 120
    names = [info.name for info in hookviz.list_layers(model, kind="usual")]
    assert 20 < len(names) < 100
    assert names[:4] == ["features", "features.0", "features.0.0", "features.1"]
    assert "features.5.3.mlp" in names
    assert not any(name.endswith((".0.norm1", ".attn.qkv", ".mlp.0")) for name in names)


def test_a_detector_s_backbone_is_what_it_computes() -> None:
    model = hookviz.load_model("ssdlite320_mobilenet_v3_large", "random")
    assert values_are_recorded(model) > 150
    answer = hookviz.capture(model, "assets/samples/cat.jpg").answer
    assert answer is not None
    assert answer.reading.kind == "boxes"


@pytest.mark.sweep(
    "by day one detector and, in tests/capturing, one that segments and one of video"
)
@pytest.mark.parametrize("name", OTHER_TASKS)
def test_every_network_of_another_task_is_what_it_computes(name: str) -> None:
    assert values_are_recorded(hookviz.load_model(name, "random")) > 30


@pytest.mark.sweep("by day one transformer: the test above")
@IN_EVERY_NETWORK
def test_every_network_s_layers_are_what_it_computes(
    of_catalog: Model, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["of_catalog"][0]
    assert values_are_recorded(of_catalog) > 5
    sized = layouts_are_told_by_sizes(name, of_catalog)
    assert sized > 5 or name.startswith(("vit_", "shapesvit", "maxvit_", "swin_v2"))
