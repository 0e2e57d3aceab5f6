"""A pass is followed for so long; what goes out of torch's sight has all of the image in it."""

import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision.models import alexnet, vgg16

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import SettingError
from hookviz.explaining.layers.layer_description import field_text
from hookviz.explaining.receptive_fields.receptive_field import (
    Budget,
    receptive_fields,
    strongest,
    trace_fields,
    weights_of_pixels,
)
from hookviz.types import ActivationKey
from tests.every_network import IN_EVERY_NETWORK
from tests.explaining.receptive_fields.test_rules import Calls, check_not_too_small, conv
from tests.networks import Tiny, as_model, random_input, seeded
from tests.token_networks import TOKEN_NETWORKS

SHAPE = (3, 14, 12)
CONSTANT = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64).reshape(1, 3, 1, 1)


class Kind(Tensor):
    """A subclass of a person's own."""


def scripted(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        made: Callable[[Tensor], Tensor] = torch.jit.script(function)
    return made


@scripted
def upside_down(images: Tensor) -> Tensor:
    return images.flip(2)


@scripted
def turned_over_in_place(images: Tensor) -> Tensor:
    return images.add_(images.flip(2).flip(3))


class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, images: Tensor) -> Tensor:
        return images.flip(3)


def in_thread(function: Callable[[], Tensor]) -> Tensor:
    result: list[Tensor] = []

    def run() -> None:
        with torch.no_grad():
            result.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def written_unseen_beside_a_view(images: Tensor) -> Tensor:
    doubled = images * 2
    view = doubled[:, :, 1:]
    turned_over_in_place(doubled)
    view.relu_()
    return doubled


def written_in_a_thread(images: Tensor) -> Tensor:
    doubled = images * 2
    in_thread(lambda: doubled.add_(doubled.flip(2)))
    return doubled


def drawn_on_a_canvas(images: Tensor) -> Tensor:
    canvas = torch.zeros_like(images)
    canvas.transpose(2, 3).add_(images.flip(2).transpose(2, 3))
    return canvas


def given_other_values_unseen(images: Tensor) -> Tensor:
    doubled = images * 2

    def give() -> Tensor:
        doubled.data = images.flip(2).data
        return doubled

    return in_thread(give)


def turned_unseen(images: Tensor) -> Tensor:
    doubled = images * 2
    in_thread(lambda: doubled.transpose_(2, 3))
    return doubled


def through_numbers(images: Tensor) -> Tensor:
    return torch.tensor(images.tolist(), dtype=images.dtype).flip(2)


UNFOLLOWED: dict[str, Callable[[Tensor], Tensor]] = {
    "script function": lambda x: upside_down(x),  # noqa: PLW0108 - which itself can't be copied
    "subclass": lambda x: x.as_subclass(Kind).flip(2).as_subclass(Tensor),
    "function with a gradient of its own": Turned.apply,
    "thread": lambda x: in_thread(lambda: x.flip(2)),
    "numpy": lambda x: torch.from_numpy(x.numpy()[:, :, ::-1].copy()),
    "numbers": through_numbers,
    "a number": lambda x: x * x.sum().item(),
    "vmap": torch.vmap(lambda each: each.flip(1)),
    "written unseen beside a view": written_unseen_beside_a_view,
    "written in a thread": written_in_a_thread,
    "drawn on a canvas": drawn_on_a_canvas,
    "given other values unseen": given_other_values_unseen,
    "turned unseen": turned_unseen,
    "filled with the sum": lambda x: x * x.new_full((1,), x.sum()),  # type: ignore[arg-type]
    "joined with what is known": lambda x: torch.cat(
        [conv(2, (3, 3))(x), upside_down(x)[:, :, 2:, 2:]], 1
    ),
    "added to what is smaller": lambda x: upside_down(x) + x[:, :1, :, :1],
}  # fmt: skip


def behind(found: Tensor) -> Tensor:
    result: Tensor = conv(2, (3, 3), given=found.shape[1])(found)
    return result


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_no_box_is_too_small_behind_what_is_not_followed(name: str) -> None:
    check_not_too_small(lambda x: behind(UNFOLLOWED[name](x)))


@pytest.mark.parametrize("name", ["script function", "subclass", "thread", "vmap"])
def test_a_layer_behind_it_sees_all_of_the_image(name: str) -> None:
    field = receptive_fields(as_model(Calls(UNFOLLOWED[name])), SHAPE)["inside"]
    assert field.size is None
    assert field.box(0, 0) == field.box(13, 11) == (0, 0, 14, 12)


class Constants(nn.Module):
    """Adds what was there before to what sees little: by a buffer, an attribute, a closure."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 3))
        self.register_buffer("scale", torch.ones(1, 3, 1, 1))
        self.shifts = {"shift": torch.zeros(1, 3, 1, 1)}
        self.places = _Places()
        self.last = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        values = self.conv(images - CONSTANT) * self.scale + self.shifts["shift"]
        result: Tensor = self.last(values + self.places(values))
        return result


class _Places(nn.Module):
    """How far down a row is; nothing of the image."""

    def forward(self, found: Tensor) -> Tensor:
        mask = found.new_zeros(1, 1, found.shape[2], 1)
        mask[:, :, 1:].fill_(2.0)
        return mask + torch.arange(found.shape[2], dtype=found.dtype)[None, None, :, None]


def test_what_was_there_before_has_nothing_of_the_image() -> None:
    fields = receptive_fields(as_model(seeded(Constants).double()), SHAPE)
    assert fields["last"].size == (3, 3)
    assert fields["last"].box(2, 3) == (2, 3, 5, 6)
    assert fields["places"].box(1, 0) == (0, 0, 0, 0)


def passed(network: nn.Module, budget: Budget) -> dict[str, tuple[int, int] | None]:
    fields = trace_fields(network.eval(), torch.zeros(1, 3, 16, 16), budget=budget)
    return {address: field.size for address, field in fields.items()}


def test_beyond_the_time_a_layer_sees_all() -> None:
    ticks = iter(range(10_000))
    plenty = passed(seeded(Tiny), Budget(seconds=1e9, clock=lambda: float(next(ticks))))
    assert plenty == {
        "conv1": (3, 3),
        "relu": (3, 3),
        "conv2": (5, 5),
        "relu#1": (5, 5),
        "head": (16, 16),
    }
    ticks = iter(range(10_000))
    short = passed(seeded(Tiny), Budget(seconds=1, clock=lambda: float(next(ticks))))
    assert short == dict.fromkeys(("relu", "conv2", "relu#1")) | {
        "conv1": (3, 3),
        "head": (16, 16),
    }


def test_beyond_the_memory_a_layer_sees_all() -> None:
    edges = 4 * 16 + 4 * 16  # of the image and of the first map; and of what is kept
    assert passed(seeded(Tiny), Budget(values=4 * edges))["relu#1"] == (5, 5)
    assert passed(seeded(Tiny), Budget(values=edges))["relu#1"] is None


def test_the_edges_of_a_large_network_that_pads_are_few() -> None:
    """As TensorFlow does: as much before and behind each map as its side and stride take."""
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        network = timm.create_model("tf_efficientnet_b0", pretrained=False).eval()
        image = torch.empty(1, 3, 513, 513)
    budget = Budget(seconds=math.inf, values=500_000)  # 2 MB
    fields = trace_fields(network, image, budget=budget)
    assert not budget.spent
    assert fields["blocks.0.0.conv_dw"].size == (7, 7)
    assert fields["conv_head"].size is None


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
    near, far = (receptive_fields(model, hookviz.prepare_input(model, each)) for each in images)
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


def test_the_fewest_pixels_that_hold_the_mass() -> None:
    weights = np.array([[1.0, 5.0], [3.0, 1.0]])
    assert strongest(weights, 0.5).tolist() == [[False, True], [False, False]]
    assert strongest(weights, 0.51).tolist() == [[False, True], [True, False]]
    assert strongest(weights, 0.85).tolist() == [[True, True], [True, False]]  # of equals the first
    assert strongest(weights, 1.0).all()
    assert not strongest(np.zeros((2, 3))).any()
    weights = np.random.default_rng(0).random((7, 9)) ** 4
    chosen = strongest(weights, 0.95)
    smallest = np.sort(weights[chosen])
    assert smallest.sum() >= 0.95 * weights.sum()
    assert smallest[1:].sum() < 0.95 * weights.sum()
    assert smallest[0] >= weights[~chosen].max()


def test_a_pixel_weighs_what_its_channels_weigh() -> None:
    gradient = np.array([[[1.0, -2.0]], [[-3.0, 0.5]]], np.float32)
    assert weights_of_pixels(gradient).tolist() == [[4.0, 2.5]]
