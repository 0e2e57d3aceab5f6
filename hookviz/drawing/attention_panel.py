"""Show what each patch of an image attends to: a panel that one clicks, and its sheet on paper."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import coloured
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.panels import ImagePanel
from hookviz.language.saying import say
from hookviz.types import Pixels

Numbers = NDArray[np.floating[Any]]
Cells = NDArray[np.int64]
CLASS_TOKEN = -1
"""Stands for the class token among the cells that can ask."""

_SIDE, _COLUMNS, _GAP = 168, 5, 6  # of a tile of the sheet, in pixels
_FRAME = 2  # pixels around the patch that asks
_OPACITY, _DIM = 0.65, 0.3
COLORMAP = "inferno"
"""Of maps over a photograph, be the page dark or light: as Grad-CAM's."""


@dataclass(frozen=True, eq=False, slots=True)
class FixedMap:
    """A map that does not depend on the query, such as the class token's.

    Attributes:
        name: what it is called.
        values: ``(rows, columns)``.
    """

    name: str
    values: Numbers = field(repr=False)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AttentionPanel(ImagePanel):
    """What every patch attends to, head by head; `picture` is the sheet of one patch's maps.

    Attributes:
        photograph: what the network saw, RGB uint8, ``(H, W, 3)``.
        grid: rows and columns of the patches.
        weights: ``(windows, heads, queries, keys)``, float32.
        queries, keys: the cell of each, row by row, ``(windows, queries)`` and ``(windows, keys)``;
            below 0 for those that lie nowhere.
        class_token: the query that is the class token, if there is one.
        fixed: maps that do not depend on the patch.
        query: the patch that asks first, by its number; `CLASS_TOKEN` for that.
        head: the head that is looked at first; None for their mean.
    """

    photograph: Pixels = field(repr=False)
    grid: tuple[int, int]
    weights: Numbers = field(repr=False)
    queries: Cells = field(repr=False)
    keys: Cells = field(repr=False)
    class_token: int | None
    fixed: tuple[FixedMap, ...]
    query: int
    head: int | None

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that pictures and weights take."""
        return self.picture.nbytes + self.photograph.nbytes + self.weights.nbytes

    def _text(self) -> str:
        return f"[{self.title}] {self.alt}"


def head_maps(
    weights: Numbers, queries: Cells, keys: Cells, grid: tuple[int, int], query: int
) -> Numbers:
    """Lay out what a query attends to, for each head: ``(heads, rows, columns)``.

    NaN where there is no key. A query that is not there has NaN everywhere.

    Weights are ``(windows, heads, queries, keys)``, the cells of queries ``(windows, queries)``, of
    keys ``(windows, keys)``. `query` is the number of a cell; `CLASS_TOKEN` for the first query of
    the first window.
    """
    laid = np.full((weights.shape[1], grid[0] * grid[1]), np.nan, np.float32)
    found = [(0, 0)] if query == CLASS_TOKEN else np.argwhere(queries == query).tolist()
    if found:
        window, number = found[0]
        lies = keys[window] >= 0
        laid[:, keys[window][lies]] = weights[window, :, number][:, lies]
    return laid.reshape(-1, *grid)


def attention_sheet(photograph: Pixels, maps: Sequence[Numbers], query: int | None) -> Pixels:
    """Draw maps over the photograph, tile by tile, with the patch that asks in a white frame.

    The photograph is RGB uint8, ``(H, W, 3)``; each map is ``(rows, columns)``, and cells of NaN
    are darkened.

    Returns:
        RGB uint8.
    """
    small = shrunk(photograph, _SIDE)
    tiles = [_tile(small, values, query) for values in maps]
    columns = min(_COLUMNS, len(tiles))
    tiles += [np.full_like(tiles[0], 255)] * (-len(tiles) % columns)
    gaps = (0, _GAP), (0, _GAP), (0, 0)  # below and beside each tile
    spaced = [np.pad(tile, gaps, constant_values=255) for tile in tiles]
    rows = [np.hstack(spaced[start : start + columns]) for start in range(0, len(tiles), columns)]
    sheet: Pixels = np.vstack(rows)
    return sheet[:-_GAP, :-_GAP]


def _tile(small: Pixels, values: Numbers, query: int | None) -> Pixels:
    height, width = small.shape[:2]
    rows, columns = values.shape
    down = np.arange(height) * rows // height
    across = np.arange(width) * columns // width
    cells = np.ix_(down, across)
    most = float(np.nanmax(values, initial=0)) or 1.0
    colours = coloured(np.nan_to_num(values), COLORMAP, low=0, high=most)[cells]
    blended = small * (1 - _OPACITY) + colours * _OPACITY
    nowhere = np.isnan(values)[cells]
    blended[nowhere] = small[nowhere] * _DIM
    tile: Pixels = np.rint(blended).astype(np.uint8)
    if query is not None and query >= 0:
        top, bottom = np.flatnonzero(down == query // columns)[[0, -1]]
        left, right = np.flatnonzero(across == query % columns)[[0, -1]]
        inner = tile[top + _FRAME : bottom + 1 - _FRAME, left + _FRAME : right + 1 - _FRAME].copy()
        tile[top : bottom + 1, left : right + 1] = 255
        tile[top + _FRAME : bottom + 1 - _FRAME, left + _FRAME : right + 1 - _FRAME] = inner
    return tile


def query_name(query: int, grid: tuple[int, int]) -> str:
    """Return what a query is called, to stand within a sentence."""
    if query == CLASS_TOKEN:
        return say("the class token")
    return say(
        "the patch at row {row}, column {column}", row=query // grid[1], column=query % grid[1]
    )
