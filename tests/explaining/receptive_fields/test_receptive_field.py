from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models import alexnet, vgg16

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import SettingError
from hookviz.explaining.layers.layer_description import field_text
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.types import ActivationKey
from tests.every_network import IN_EVERY_NETWORK
from tests.networks import Tiny, as_model, random_input, seeded
from tests.token_networks import TOKEN_NETWORKS


def test_sizes_and_strides_are_those_of_the_books() -> None:
    """Against the table of Araujo et al., "Computing Receptive Fields of Convolutional Neural
    Networks", Distill 2019: AlexNet 195 and VGG-16 212 pixels after their last pooling.
    """
    with torch.device("meta"):
        last = ((alexnet().features, "12", 195), (vgg16().features, "30", 212))
    for features, layer, size in last:
        model = as_model(features.to_empty(device="cpu"))
        field = receptive_fields(model, (3, 224, 224))[layer]
        assert field.size == (size, size)
        assert field.stride == (32, 32)


def test_a_network_for_one_size_alone_has_fields_too() -> None:
    network = seeded(
        lambda: nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 14 * 14, 5))
    )
    fields = receptive_fields(as_model(network), (3, 16, 16))
    assert fields["0"].size == (3, 3)
    assert fields["2"].cells == (1, 1)
    assert fields["2"].box(0, 0) == (0, 0, 16, 16)


def test_a_way_that_values_choose_is_seen_where_the_input_is_given() -> None:
    class Choosing(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            maps = self.conv1(images)
            far = maps.mean((2, 3), keepdim=True) + maps
            result: Tensor = self.conv2(maps if images.sum() > 0 else far)
            return result

    model = as_model(seeded(Choosing))
    images = (random_input(1, 16) + 1, random_input(1, 16) - 9)
    near, far = (receptive_fields(model, hookviz.prepare(model, each)) for each in images)
    assert near["conv2"].box(1, 1) == (1, 1, 6, 6)
    assert far["conv2"].box(1, 1) == (0, 0, 16, 16)


def test_what_has_no_values_sees_nothing() -> None:
    class Empty(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            self.relu(images[:0])
            return super().forward(images)

    fields = receptive_fields(as_model(seeded(Empty)), (3, 16, 16))
    assert fields["relu"].size == (0, 0)
    assert fields["conv2"].size == (5, 5)


def test_the_network_is_given_no_image_but_of_the_shape_asked_for() -> None:
    given: set[tuple[int, ...]] = set()

    class Noting(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            given.add(tuple(images.shape))
            return super().forward(images)

    model = as_model(seeded(Noting))
    given.clear()
    assert receptive_fields(model, (3, 20, 16))["conv2"].size == (5, 5)
    assert given == {(1, 3, 20, 16)}


def test_a_cell_that_is_not_there_and_an_input_that_does_not_fit_are_refused(
    tiny: hookviz.Model,
) -> None:
    field = receptive_fields(tiny, (3, 16, 16))["conv2"]
    with pytest.raises(SettingError, match=r"row 7, column 0: the map has 7×7"):
        field.box(7, 0)
    with pytest.raises(hookviz.ModelError, match="made for 3×16×16"):
        receptive_fields(tiny, (2, 16, 16))


@pytest.mark.sweep("by day ShapesNet and networks of a few layers")
@IN_EVERY_NETWORK
def test_no_field_of_the_catalog_is_too_small(of_catalog: hookviz.Model) -> None:
    """NaN in a pixel comes out of no cell whose box does not hold that pixel."""
    model, side = of_catalog, max(64, of_catalog.min_size)
    fields = receptive_fields(model, (3, side, side))
    convs = [layer.name for layer in hookviz.list_layers(model, input_shape=(3, side, side))]
    row, column = side // 2 - 3, side // 3
    image = torch.zeros(1, 3, side, side)
    image[0, :, row, column] = torch.nan
    captured = hookviz.capture(model, image, logits=False)
    for layer in convs:
        for cell in captured[layer].values.isnan().any(0).nonzero().tolist():
            top, left, bottom, right = fields[layer].box(*cell)
            assert top <= row < bottom, (layer, cell)
            assert left <= column < right, (layer, cell)


@pytest.mark.parametrize("name", TOKEN_NETWORKS)
def test_what_a_cell_behind_attention_sees_is_what_its_gradient_is_of(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    model = case.model()
    fields = receptive_fields(model, (3, *case.size))
    trace = layer_trace(model, (3, *case.size))
    seen: dict[str, Tensor] = {}
    for at in {*trace.layouts} & {ActivationKey(info.name) for info in trace.maps}:

        def keep(_module: nn.Module, _given: Any, output: Tensor, at: ActivationKey = at) -> None:
            seen[at.layer] = trace.layouts[at].batch_maps(output)[0]

        model.network.get_submodule(at.layer).register_forward_hook(keep)
    image = case.image().requires_grad_()
    model.network(image)
    words = set()
    for layer, maps in seen.items():
        if layer not in fields:
            assert trace.layouts[ActivationKey(layer)].word == "windows"
            continue
        rows, columns = maps.shape[1:]
        for row, column in {(0, 0), (rows // 2, columns - 1)}:
            value = maps[:, row, column].square().sum()
            (gradient,) = torch.autograd.grad(value, image, retain_graph=True)
            pixels = gradient[0].abs().sum(0).nonzero()
            first, last = pixels.amin(0).tolist(), (pixels.amax(0) + 1).tolist()
            assert fields[layer].box(row, column) == (*first, *last), (layer, row, column)
        words.add(field_text(fields[layer]))
    whole = "attention mixes all patches: sees all of the image"
    windows = "sees at most 8×8 px, by attention in windows"
    assert (whole in words) is ("ViT" in name or "DeiT" in name)
    assert (windows in words) is ("Swin" in name)
    assert ("sees at most the whole image, by attention in windows" in words) is ("Swin" in name)
    assert "sees 4×4 px" in words
