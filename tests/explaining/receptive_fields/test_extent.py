"""Extents on unbounded images and through attention, against long maps and NaN in the input."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.explaining.receptive_fields.extent import (
    AxisField,
    adaptive_pool_window,
    conv_window,
    merge_axis_fields,
    pixel_axis_field,
)
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from tests.explaining.receptive_fields.test_rules import Calls, check
from tests.networks import as_model

LARGE = 72  # its middle is far from any border
CELLS = 6  # in a row, after which the windows of all these networks come again


def test_fields_are_merged_only_where_their_jumps_are_the_same() -> None:
    fine, coarse = pixel_axis_field(-1), pixel_axis_field(-1).through(conv_window(2, 2))
    assert coarse is not None
    again = coarse.through(adaptive_pool_window(1, 2))
    both: Any = merge_axis_fields([fine, again])
    assert (both.period, both.shift, both.size) == (2, 2, 2)
    assert merge_axis_fields([fine, coarse]) is None
    assert merge_axis_fields([fine, None]) is None
    assert merge_axis_fields([fine, replace(fine, dim=-2)]) is None


def test_a_period_that_is_too_long_is_given_up() -> None:
    field: AxisField | None = pixel_axis_field(-1)
    for _ in range(4):
        field = field and field.through(adaptive_pool_window(8, 9))
    assert field is None


class Function(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *found: Tensor) -> Tensor:
        return self.function(*found)


class Halves(nn.Module):
    """Down and up again, with what there was before beside it, as in a U-Net."""

    def __init__(self, up: nn.Module) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 3, 3, stride=2, padding=1)
        self.inner = nn.Conv2d(3, 3, 3, padding=1)
        self.up = up
        self.join = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        values = self.inner(self.down(images))
        values = self.up(values, images) if isinstance(self.up, Function) else self.up(values)
        result: Tensor = self.join(torch.cat([values, images], 1))
        return result


def conv(kernel: int = 3, **options: object) -> nn.Conv2d:
    return nn.Conv2d(3, 3, kernel, **options)  # type: ignore[arg-type]


NETWORKS: dict[str, Callable[[], list[nn.Module]]] = {
    "strided": lambda: [conv(stride=2, padding=1), conv(5, stride=2, padding=2), conv(padding=1)],
    "dilated": lambda: [conv(dilation=3, padding=3), nn.AvgPool2d(3, 2, 1), conv(padding=1)],
    "zeros around": lambda: [nn.ZeroPad2d((1, 2, 0, 3)), conv(), nn.ZeroPad2d(1), conv(stride=2)],
    "mirrored": lambda: [nn.ReflectionPad2d((1, 0, 2, 1)), conv(), nn.ReflectionPad2d(2), conv(5)],
    "repeated": lambda: [nn.ReplicationPad2d((2, 1, 0, 1)), conv(stride=2), conv(padding=1)],
    "circular": lambda: [nn.CircularPad2d((1, 2, 1, 0)), conv(), nn.CircularPad2d(1), conv()],
    "constant": lambda: [nn.ConstantPad2d((3, 1, 1, 2), 0.5), conv(4, stride=2), conv(padding=1)],
    "cropped": lambda: [nn.ZeroPad2d((-1, 2, -2, 0)), conv(), conv(padding=1)],
    "padded by the layer": lambda: [
        conv(padding=2, padding_mode="reflect", stride=2),
        conv(padding="same", padding_mode="circular"),
    ],
    "padded as a volume": lambda: [
        Function(lambda x: F.pad(x[:, :, None], (1, 1, 2, 0, 0, 0)).squeeze(2)),
        conv(stride=2),
        Function(lambda x: F.pad(x.unsqueeze(0), (1, 1, 1, 1, 0, 0), "replicate")[0]),
        conv(),
    ],
    "with channels around": lambda: [
        conv(padding=1),
        Function(lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1))[:, 1:4]),
        conv(padding=1),
    ],
    "transposed": lambda: [
        conv(stride=2, padding=1),
        nn.ConvTranspose2d(3, 3, 3, stride=2, padding=1, output_padding=1),
        conv(padding=1),
    ],
    "transposed with gaps": lambda: [nn.ConvTranspose2d(3, 3, 2, stride=3), conv(), conv(stride=3)],
    "nearest": lambda: [Halves(nn.Upsample(scale_factor=2)), conv(padding=1)],
    "bilinear": lambda: [Halves(nn.Upsample(scale_factor=2, mode="bilinear")), conv(padding=1)],
    "by 3 halves": lambda: [nn.Upsample(scale_factor=1.5, mode="bilinear"), conv(padding=1)],
    "shuffled": lambda: [
        nn.PixelUnshuffle(2),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.PixelShuffle(2),
        conv(padding=1),
    ],
    "channels last": lambda: [
        conv(stride=2, padding=1),
        Function(lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (3,)) + x.permute(0, 2, 3, 1)),
        Function(lambda x: F.linear(x, x.new_ones(3, 3)).permute(0, 3, 1, 2)),
        conv(padding=1),
    ],
    "other channels": lambda: [
        Function(lambda x: x[:, [2, 1, 0]].flip(1)[:, :1].repeat(1, 3, 1, 1).roll(1, 1)),
        conv(stride=2, padding=1),
        Function(lambda x: x.view(1, 3, 1, *x.shape[2:]).transpose(1, 2).flatten(1, 2)),
        conv(padding=1),
    ],
    "cut": lambda: [
        conv(padding=1),
        Function(lambda x: x[:, :, 1:, ::2] * x[..., :-1, 1::2]),
        conv(stride=(2, 1), padding=1),
    ],
}  # fmt: skip


def built(parts: list[nn.Module]) -> nn.Sequential:
    """The network with weights of 1, so that nothing cancels."""
    network = nn.Sequential(nn.Sequential(*parts), nn.Identity()).double()
    for parameter in network.parameters():
        nn.init.ones_(parameter)
    return network


def fields_of(network: nn.Module, axis: int) -> list[tuple[int, int]]:
    """The first and the last pixel along an axis that rows, or columns, of a large map see."""
    image = torch.rand(1, 3, LARGE, LARGE, dtype=torch.float64, requires_grad=True)
    result = network(image)
    middle, seen = result.shape[axis] // 2 - CELLS // 2, []
    for cell in range(middle, middle + CELLS + 1):
        value = result.select(axis, cell).sum()
        (gradient,) = torch.autograd.grad(value, image, retain_graph=True)
        pixels = gradient.abs().sum([dim for dim in range(4) if dim != axis]).nonzero()
        seen.append((int(pixels.min()), int(pixels.max())))
    return seen


def to_the_size(mode: str) -> nn.Module:
    return Halves(Function(lambda x, to: F.interpolate(x, to.shape[-2:], mode=mode)))


ODD: dict[str, Callable[[], list[nn.Module]]] = {
    "nearest, to a size": lambda: [to_the_size("nearest"), conv(padding=1)],
    "bilinear, to a size": lambda: [
        nn.AvgPool2d(2),
        to_the_size("bilinear"),
        conv(padding=1),
    ],
}


@pytest.mark.parametrize("side", [6, 12])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_small_image_tells_the_sizes_of_a_large_one(name: str, side: int) -> None:
    check_sizes(built(NETWORKS[name]()), side)


@pytest.mark.parametrize("side", [13, 14, 15, 21])
@pytest.mark.parametrize("name", ODD)
def test_maps_of_odd_lengths_tell_them_too(name: str, side: int) -> None:
    check_sizes(built(ODD[name]()), side)


def check_sizes(network: nn.Module, side: int) -> None:
    field = receptive_fields(as_model(network), (3, side, side))["1"]
    assert field.size is not None
    for axis in (0, 1):
        seen = fields_of(network, axis + 2)
        assert field.size[axis] == max(last + 1 - first for first, last in seen)
        assert field.stride[axis] == (seen[CELLS][0] - seen[0][0]) / CELLS


def tokens(maps: Tensor) -> Tensor:
    """(1, C, H, W) as (1, H·W, C)."""
    return maps.flatten(2).mT


def maps(cells: Tensor) -> Tensor:
    return torch.unflatten(cells.mT, 2, (14, 12))


def windows(maps: Tensor) -> Tensor:
    """(1, C, 14, 12) as (7 windows, 24 cells, C), each two rows."""
    return torch.unflatten(maps, 2, (7, 2)).movedim(2, 1)[0].flatten(2).mT


def together(cells: Tensor) -> Tensor:
    """The windows as maps again."""
    return torch.unflatten(cells.mT, 2, (2, 12)).movedim(0, 1).flatten(1, 2)[None]


def by_hand(cells: Tensor) -> Tensor:
    weights = (cells @ cells.mT / 2 + 1).softmax(-1)
    return F.dropout(weights, 0.1, training=False) @ cells


def fused(cells: Tensor) -> Tensor:
    heads = cells[:, None]
    return F.scaled_dot_product_attention(heads, heads, heads)[:, 0]


def multi_head(cells: Tensor) -> Tensor:
    first, ones = cells.movedim(1, 0), cells.new_ones  # tokens first, and then the batch
    attend: Any = F.multi_head_attention_forward
    weights = (ones(9, 3), ones(9), None, None, False, 0.0, ones(3, 3), ones(3))
    found: Tensor = attend(first, first, first, 3, 1, *weights, training=False)[0]
    return found.movedim(0, 1)


ATTENTION: dict[str, Callable[[Tensor], Tensor]] = {
    "by hand": by_hand,
    "fused": fused,
    "multi-head": multi_head,
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_sees_all_that_it_attends_to_or_its_window_and_no_more(name: str) -> None:
    attend, shape = ATTENTION[name], (3, 14, 12)
    model = as_model(Calls(lambda x: maps(attend(tokens(x)))))
    check(model, "inside", shape)
    assert receptive_fields(model, shape)["inside"].mixed == "all"
    model = as_model(Calls(lambda x: together(attend(windows(x)))))
    check(model, "inside", shape)
    field = receptive_fields(model, shape)["inside"]
    assert field.mixed == "windows"
    assert field.box(5, 3) == (4, 0, 6, 12)


PRODUCTS: dict[str, Callable[[Tensor], Tensor]] = {
    "from the right": lambda x: x @ x.new_ones(12, 5),
    "from the left": lambda x: x.new_ones(5, 14) @ x,
    "of two": lambda x: x @ x.mT,
    "in a batch": lambda x: torch.bmm(x[0], x.new_ones(3, 12, 4))[None],
    "with what has fewer dimensions": lambda x: torch.matmul(x.new_ones(2, 14), x),
    "of channels": lambda x: maps(tokens(x) @ x.new_ones(3, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_sees_rows_and_columns(name: str) -> None:
    model = as_model(Calls(PRODUCTS[name]))
    check(model, "inside", (3, 14, 12))
    assert receptive_fields(model, (3, 14, 12))["inside"].mixed == ""


def test_weights_that_are_no_attention_s_are_not_taken_for_it() -> None:
    model = as_model(Calls(lambda x: (x.mean((2, 3), keepdim=True).softmax(1) * x) @ x.mT))
    assert receptive_fields(model, (3, 14, 12))["inside"].mixed == ""
