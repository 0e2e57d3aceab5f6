"""Every rule against the truth: NaN in one row or column comes out where that is seen."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.types import Model
from tests.networks import as_model


class Calls(nn.Module):
    """A network that is one function of the image, in a module so that its output is seen."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inside = _Inside(function)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.inside(images)
        return values


class _Inside(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones(1, dtype=torch.float64), requires_grad=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.function(images)


def seen_by(model: Model, layer: str, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """Which rows and columns of an input each cell depends on: ``(H, rows, columns)`` and so on."""
    result = []
    for axis in (2, 3):
        images = torch.zeros(shape[axis - 1], *shape, dtype=torch.float64)
        for cell in range(shape[axis - 1]):
            images[cell].select(axis - 1, cell).fill_(torch.nan)
        result.append(torch.stack([_put_out(model, layer, image[None]) for image in images]))
    return result[0], result[1]


def _put_out(model: Model, layer: str, image: Tensor) -> Tensor:
    kept: list[Tensor] = []
    module = model.network.get_submodule(layer)
    handle = module.register_forward_hook(lambda _module, _given, output: kept.append(output))
    with torch.no_grad():
        model.network(image)
    handle.remove()
    return kept[0].isnan().any(1)[0]


def check(model: Model, layer: str, shape: tuple[int, int, int]) -> None:
    """Each cell's box is the rectangle that holds all it depends on, and nothing more."""
    field = receptive_fields(model, shape)[layer]
    rows, columns = seen_by(model, layer, shape)
    assert field.cells == tuple(rows.shape[1:])
    for row in range(field.cells[0]):
        for column in range(field.cells[1]):
            top, left, bottom, right = field.box(row, column)
            ys, xs = rows[:, row, column].nonzero(), columns[:, row, column].nonzero()
            if not len(ys):
                assert (bottom - top) * (right - left) == 0
                continue
            assert (top, bottom - 1) == (int(ys.min()), int(ys.max())), (row, column)
            assert (left, right - 1) == (int(xs.min()), int(xs.max())), (row, column)


def ones(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.float64)


def conv(channels: int, kernel: tuple[int, int], given: int = 3, **options: Any) -> Any:
    def function(images: Tensor) -> Tensor:
        weight = torch.ones(
            channels,
            given // options.get("groups", 1),
            *kernel,
            dtype=images.dtype,
            device=images.device,
        )
        return F.conv2d(images, weight, **options)

    return function


def written_in_part(images: Tensor) -> Tensor:
    doubled = images * 2
    doubled[:, :, :4] += images.flip(2)[:, :, :4]
    return doubled


def back(**options: Any) -> Any:
    def function(images: Tensor) -> Tensor:
        weight = torch.ones(3, 2, 3, 2, dtype=images.dtype, device=images.device)
        return F.conv_transpose2d(images[:, :, ::3, ::3], weight, **options)

    return function


WINDOWS: dict[str, Callable[[Tensor], Tensor]] = {
    "3×3": conv(4, (3, 3)),
    "padded": conv(4, (3, 5), padding=(1, 2)),
    "strided": conv(4, (3, 3), stride=(2, 3), padding=1),
    "strided past what it sees": conv(4, (1, 1), stride=2),
    "dilated": conv(4, (3, 2), dilation=(2, 3), padding=(2, 1)),
    "same": conv(4, (4, 3), padding="same", dilation=(1, 2)),
    "valid": conv(4, (4, 3), padding="valid"),
    "grouped": conv(6, (3, 3), groups=3, padding=1),
    "padded more than the kernel": conv(2, (2, 2), padding=4),
    "transposed": back(),
    "transposed, strided": back(stride=2, padding=1, output_padding=1),
    "transposed, dilated": back(stride=(3, 2), dilation=(2, 3)),
    "max pooling": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max pooling, ceiled": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "max pooling, dilated": lambda x: F.max_pool2d(x, (2, 3), dilation=2),
    "mean pooling": lambda x: F.avg_pool2d(x, (3, 2), padding=1),
    "adaptive pooling": lambda x: F.adaptive_avg_pool2d(x, (5, 4)),
    "adaptive pooling to more": lambda x: F.adaptive_max_pool2d(x, (20, 5)),
    "global pooling": lambda x: F.adaptive_avg_pool2d(x, 1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest to less": lambda x: F.interpolate(x, (7, 5)),
    "nearest-exact": lambda x: F.interpolate(x, (7, 19), mode="nearest-exact"),
    "nearest by a factor": lambda x: F.interpolate(x, scale_factor=(1.3, 0.7)),
    "nearest-exact by a factor": lambda x: F.interpolate(
        x, scale_factor=(1.45, 0.8), mode="nearest-exact"
    ),
    "bilinear by a factor": lambda x: F.interpolate(x, scale_factor=(1.45, 0.7), mode="bilinear"),
    "bicubic by a factor": lambda x: F.interpolate(x, scale_factor=(1.45, 0.7), mode="bicubic"),
    "bilinear": lambda x: F.interpolate(x, (9, 20), mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, (25, 9), mode="bilinear", align_corners=True),
}  # fmt: skip

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "squeeze and excitation": lambda x: F.conv2d(x, x.new_ones(3, 3, 1, 1)) * x.mean((2, 3), True),
    "sum of two ways": lambda x: conv(3, (3, 3), padding=1)(x) + conv(3, (5, 1), padding=(2, 0))(x),
    "added in place": lambda x: (2 * x).add_(conv(3, (3, 3), padding=1)(x)),
    "norm over all": lambda x: F.layer_norm(x, tuple(x.shape[1:])),
    "group norm": lambda x: F.group_norm(x, 3),
    "softmax over rows": lambda x: x.softmax(2),
    "matrix product": lambda x: x @ x.transpose(2, 3),
    "written in part": written_in_part,
    "zeros around": lambda x: F.pad(x, (1, 2, 0, 3)),
    "cropped": lambda x: F.pad(x, (-1, -2, 2, -3)),
    "mirrored around": lambda x: F.pad(x, (2, 1, 3, 2), mode="reflect"),
    "circular": lambda x: F.pad(x, (2, 1, 3, 2), mode="circular"),
    "joined": lambda x: torch.cat([x, conv(3, (3, 3), padding=1)(x)], 1),
    "joined below": lambda x: torch.cat([x, conv(3, (3, 3), padding=1)(x)], 2),
    "flipped": lambda x: x.flip(3).roll(2, 2),
    "turned": lambda x: x.transpose(2, 3),
    "cut": lambda x: x[:, :, 2:-1, ::2],
    "in patches": lambda x: F.pixel_unshuffle(x, 2),
    "shuffled": lambda x: x.view(1, 3, 1, 14, 12).transpose(1, 2).flatten(1, 2).chunk(3, 1)[1],
    "channels last": lambda x: F.linear(
        F.layer_norm(x.permute(0, 2, 3, 1), (3,)), x.new_ones(5, 3)
    ).permute(0, 3, 1, 2),
}  # fmt: skip

WIDER = {"written in part", "matrix product"}
"""What is known to come out larger than the truth: all that shares memory counts together."""


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", [name for name in (*WINDOWS, *FUNCTIONS) if name not in WIDER])
def test_a_box_holds_what_is_seen_and_no_more(name: str) -> None:
    check(as_model(Calls((WINDOWS | FUNCTIONS)[name])), "inside", (3, 14, 12))


def check_not_too_small(function: Callable[[Tensor], Tensor]) -> None:
    """Each cell's box holds all that the cell depends on, and may hold more."""
    model = as_model(Calls(function))
    field = receptive_fields(model, (3, 14, 12))["inside"]
    rows, columns = seen_by(model, "inside", (3, 14, 12))
    assert rows.any()
    for row in range(field.cells[0]):
        for column in range(field.cells[1]):
            top, left, bottom, right = field.box(row, column)
            ys, xs = (seen[:, row, column].nonzero().flatten().tolist() for seen in (rows, columns))
            assert all(top <= y < bottom for y in ys)
            assert all(left <= x < right for x in xs)


@pytest.mark.parametrize("name", sorted(WIDER))
def test_a_box_is_never_too_small(name: str) -> None:
    check_not_too_small(FUNCTIONS[name])
