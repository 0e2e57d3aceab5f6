"""Mark cells of maps, read which have moved behind a layer, and tell by which layout they have.

`possible_layouts` lists the layouts that a shape allows, by the rows and columns of known maps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.capturing.returned_call import Shape
from hookviz.types import FIRST, LAST, TOKENS, WINDOWS, Layout

_MOST_PREFIX = 16  # tokens before those of the cells that are looked for

Grid = tuple[int, int]
"""Rows and columns."""

SHARE = 0.2
"""Of the cells that are marked."""

_MOVED = 1e-4  # of the largest value: more than rounding differs within a batch
_CHANNELS = 32  # that are looked at, which tell of all
_NEW = 0.3  # of what was changed, that has to be told apart from what had moved before


def possible_layouts(shape: Shape, grids: Iterable[Grid]) -> Iterator[Layout]:
    """Yield the layouts, of windows without a shift, that a tensor may have.

    Args:
        shape: of what a layer put out for one image, its batch included.
        grids: rows and columns of the maps that it may be.
    """
    for grid in grids:
        rows, columns = grid
        if len(shape) == 3 and shape[0] == 1 and 0 <= shape[1] - rows * columns <= _MOST_PREFIX:
            yield Layout(TOKENS, prefix_tokens=shape[1] - rows * columns, grid=grid)
        if len(shape) == 4 and shape[0] == 1:
            if shape[2:] == grid:
                yield Layout(FIRST)
            if shape[1:3] == grid:
                yield Layout(LAST)
        if shape[0] > 1:
            yield from _windows(shape, grid)


def _windows(shape: Shape, grid: Grid) -> Iterator[Layout]:
    rows, columns = grid
    if len(shape) == 4:
        sides = [(shape[1], shape[2])]
    elif len(shape) == 3:
        high = range(1, shape[1] + 1)
        sides = [(side, shape[1] // side) for side in high if shape[1] % side == 0]
        sides.sort(key=lambda side: abs(side[0] - side[1]))
    else:
        return
    for window in sides:
        layout = Layout(WINDOWS, batch=False, grid=grid, window=window)
        if layout.of(shape) != layout or window[0] > rows or window[1] > columns:
            continue
        yield layout
        if rows % window[0] == columns % window[1] == 0:
            yield Layout(WINDOWS, batch=False, grid=grid, window=window, strided=True)


def allows(shape: Shape, layout: Layout) -> bool:
    """Return whether what has a shape, its batch included, may lie so."""
    own = shape[1:] if layout.batch else shape
    return layout.of(own) == layout and (layout.order != FIRST or len(shape) == 4)


def grid_of(shape: Shape, layout: Layout) -> Grid:
    """Return the rows and columns of maps, given their shape with the batch."""
    _, rows, columns = layout.map_shape(shape[1:] if layout.batch else shape)
    return rows, columns


@lru_cache(maxsize=64)
def marks(grid: Grid, images: int) -> Tensor:
    """Return which cells of maps are changed for each image, bool, ``(images, H, W)``.

    Always the same, so that ways that come together agree. No mark is the same when it is mirrored
    or turned, as far as there are cells enough.

    >>> from hookviz.capturing.moved_cells import marks
    >>> marks((14, 14), 1).sum()
    tensor(39)
    """
    draws = torch.Generator().manual_seed(0)
    cells = grid[0] * grid[1]
    found = torch.zeros(images, cells, dtype=torch.bool)
    for mark in found:
        for _ in range(20):
            mark[:] = False
            mark[torch.randperm(cells, generator=draws)[: max(1, round(SHARE * cells))]] = True
            if not _is_symmetric(mark.view(grid)):
                break
    return found.view(images, *grid)


def _is_symmetric(mark: Tensor) -> bool:
    turned = [mark, mark.T] if mark.shape[0] == mark.shape[1] else [mark]
    _, *others = (each.flip(axes) for each in turned for axes in ((), (0,), (1,), (0, 1)))
    return any(torch.equal(mark, other) for other in others)


def coarser(cells: Tensor) -> Tensor:
    """Return which cells of half as many rows and columns stand for any that is marked."""
    pooled: Tensor = F.max_pool2d(cells.float(), 2, ceil_mode=True)
    return pooled.bool()


class PlacesMoved:
    """Places of a tensor with its channels last that have moved, in each of some images."""

    def __init__(self, shape: Shape, places: Tensor) -> None:
        """Take the shape for one image, its batch included, and bool ``(images, *shape[:-1])``."""
        self.shape = shape
        self._places = places

    def places_of(self, images: slice) -> Tensor:
        """Return the places that have moved, bool, ``(images, *shape[:-1])``."""
        return self._places[images]

    def any(self, images: slice) -> bool:
        """Return whether any has."""
        return bool(self._places[images].any())

    def cells(self, layout: Layout, images: slice) -> Tensor | None:
        """Return the cells that have moved, ``(images, H, W)``; None where it has not this layout.

        Of tokens and places that stand for no cell it does not tell.
        """
        values = self._places[images][..., None]
        own = values[0, 0] if layout.batch else values[0]
        if layout.order == FIRST or layout.of(tuple(own.shape)) != layout:
            return None
        return torch.stack([layout.maps(each[0] if layout.batch else each)[0] for each in values])

    def fitting(
        self, layout: Layout, images: slice, wanted: Tensor, rest: Tensor | None = None
    ) -> Iterator[Layout]:
        """Yield the layout, or with the shifts of its windows, by which the wanted cells moved.

        Args:
            layout: of windows without a shift.
            images: which of them to look at.
            wanted: cells that have moved, bool, ``(images, H, W)``.
            rest: those of them that may have moved anyway.
        """
        cells = self.cells(layout, images)
        if cells is None or cells.shape != wanted.shape:
            return
        for shift in _shifts(layout):
            turned = cells.roll(shift, (1, 2)) if any(shift) else cells
            if torch.equal(turned, wanted) or _fits_beside(turned, wanted, rest):
                yield replace(layout, shift=shift)


def _fits_beside(cells: Tensor, wanted: Tensor, rest: Tensor | None) -> bool:
    """Return whether the cells and the rest are all that are wanted, and enough are no rest."""
    if rest is None or not torch.equal(cells | rest, wanted):
        return False
    return int((cells & ~rest).sum()) > _NEW * int(cells.sum())


class Moved(PlacesMoved):
    """Which places of a tensor differ between images, the first of which is as it was."""

    def __init__(self, tensor: Tensor, shape: Shape) -> None:
        """Compare the images of a tensor, ``(images · shape[0], …)``, with the first."""
        parts = tensor.reshape(-1, *shape)
        super().__init__(shape, _differs(parts, -1))
        self._by_first = _differs(parts, 2) if len(shape) == 4 else None

    def cells(self, layout: Layout, images: slice) -> Tensor | None:
        """Return the cells that have moved, as of channels first, too, ``(images, H, W)``."""
        if layout.order == FIRST:
            return None if self._by_first is None else self._by_first[images, 0]
        return super().cells(layout, images)


def _differs(parts: Tensor, axis: int) -> Tensor:
    """Return where any channel of an image differs from the first's, behind that."""
    channels = torch.arange(0, parts.shape[axis], -(-parts.shape[axis] // _CHANNELS))
    some = parts.index_select(axis, channels.to(parts.device)).float()
    away = (some[1:] - some[:1]).abs()
    return ~(away <= _MOVED * some[0].abs().max()).all(axis).cpu()  # NaN has moved, too


def _shifts(layout: Layout) -> Sequence[Grid]:
    """Return the shifts that windows may have, the likeliest first."""
    if layout.order != WINDOWS or layout.strided:
        return [(0, 0)]
    high, wide = layout.window
    return sorted(
        product(range(high), range(wide)),
        key=lambda shift: (shift != (0, 0), shift != (high // 2, wide // 2)),
    )


def agreed(layouts: Sequence[Layout], shape: Shape) -> Layout | None:
    """Return the first layout, unless another one puts any cell somewhere else.

    Args:
        layouts: that fit what has moved.
        shape: of the tensor for one image, its batch included.
    """
    if not layouts:
        return None
    numbers = torch.arange(float(torch.Size(shape).numel())).view(shape)
    first, *others = (each.maps(numbers[0] if each.batch else numbers) for each in layouts)
    return layouts[0] if all(torch.equal(first, other) for other in others) else None
