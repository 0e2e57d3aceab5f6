"""List the layouts that a shape allows where maps of certain rows and columns are about."""

from collections.abc import Iterable, Iterator

from hookviz.capturing.returned_call import Shape
from hookviz.types import FIRST, LAST, TOKENS, WINDOWS, Layout

_MOST_PREFIX = 16  # tokens before those of the cells that are looked for

Grid = tuple[int, int]
"""Rows and columns."""


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
