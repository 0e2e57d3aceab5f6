"""Change parts of what a layer puts out for several images, the first of which stays as it is."""

from collections.abc import Iterable

import torch
from torch import Tensor

from hookviz.capturing.returned_call import Path, Shape
from hookviz.types import Layout

_FAR = 1e4  # times the largest value: what is scaled down behind, as by a LayerScale, is seen


def first_tensor(output: object) -> tuple[Path, Tensor | None]:
    """Return where the first tensor of an output is, as far as another can take its place."""
    if isinstance(output, Tensor):
        return (), output
    if type(output) is tuple and output and isinstance(output[0], Tensor):
        return ("0",), output[0]
    return (), None


def alike(output: Tensor, images: int, some: slice = slice(None)) -> Tensor:
    """Return a copy in which some images, counted without the first, are as that one."""
    copy = output.clone(memory_format=torch.contiguous_format)
    parts = copy.view(images, -1)
    parts[1:][some] = parts[:1]
    return copy


def change_cells(
    output: Tensor, shape: Shape, layout: Layout, marks: Iterable[Tensor], draws: torch.Generator
) -> None:
    """Change marked cells in place, of the second image and those that follow.

    Args:
        output: of all images.
        shape: of one, its batch of one included.
        layout: of channels first or last, or tokens.
        marks: of each image that is changed, bool, ``(H, W)``.
        draws: where the numbers come from.
    """
    parts = output.view(-1, *shape)
    far = _how_far(parts[0])
    for part, mark in zip(parts[1:], marks, strict=False):
        maps = layout.maps(part[0])
        maps += far * _noise(maps, maps.shape, draws) * mark.to(maps)


def change_places(
    output: Tensor, images: int, begin: int, places: Tensor, draws: torch.Generator
) -> None:
    """Change places in place, whatever they stand for, of the images from `begin` on.

    Args:
        output: of all images, its channels last.
        images: how many they are.
        begin: the first that is changed.
        places: of each image that is changed, bool, ``(images, places)``.
        draws: where the numbers come from.
    """
    parts = output.view(images, -1, output.shape[-1])
    far = _how_far(parts[0])
    for part, chosen in zip(parts[begin:], places, strict=True):
        some = chosen.nonzero().flatten().to(part.device)
        part[some] += far * _noise(part, (len(some), part.shape[-1]), draws)


def _how_far(values: Tensor) -> Tensor:
    far = _FAR if torch.finfo(values.dtype).max > _FAR**2 else 1.0
    return far * (1 + values.abs().max())


def _noise(like: Tensor, shape: tuple[int, ...], draws: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=draws).to(like)
