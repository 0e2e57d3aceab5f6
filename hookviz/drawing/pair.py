"""Draw two activations in the same colours: A and B, or one before and after a change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import GAP_LEVEL, palette_png
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.drawing.layout import mosaic
from hookviz.drawing.panels import GridPanel
from hookviz.drawing.scales import Limits, limits
from hookviz.drawing.statistics import channel_stats
from hookviz.language.saying import mark, say
from hookviz.wording import number, times

_RAISES = mark("red where B is higher, blue where A is")

_Map = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Pair:
    """Pair of activations as grids in the same colours.

    Attributes:
        a, b: the grids; tile by tile of the same channels where the shapes agree.
    """

    a: Grid
    b: Grid
    _draw_difference: Callable[[], Grid] | None = field(repr=False)

    @property
    def alike(self) -> bool:
        """Whether both are of one shape."""
        return self._draw_difference is not None

    @cached_property
    def difference(self) -> Grid | None:
        """Grid of B − A, zero in the middle of its colours, drawn once it is asked for.

        None where the shapes differ.
        """
        return self._draw_difference() if self._draw_difference is not None else None

    @cached_property
    def sprite(self) -> bytes:
        """Palette PNG of the tiles of B and below them those of A, a pixel for a cell.

        Only for two of one shape.
        """
        pictures = [
            mosaic(grid.levels, grid.sprite_geometry, GAP_LEVEL) for grid in (self.b, self.a)
        ]
        return palette_png(np.vstack(pictures), self.b.palette, packing="quick")


def draw_pair(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    *,
    titles: tuple[str, str],
    order: str | Sequence[int] = "index",
    top: int | None = None,
    scale: str = "layer",
    colormaps: tuple[str, str] = ("inferno", "RdBu_r"),
) -> Pair:
    """Draw the maps of A and B, each ``(C, H, W)``, on one scale that spans the values of both.

    Where the shapes agree, B is A's neighbour tile by tile and there is a difference. Where they
    do not, every policy but ``"channel"`` still gives both the same colours for the same values.

    `order` is one of `SORTS`, by the values of B where the shapes agree, else by those of each; or
    for one shape channel numbers. The second colormap is for maps with values below zero, and for
    the difference; the first for others.

    Raises:
        HookVizError: the maps are empty, or no maps.
        SettingError: an option has a value that means nothing here.
    """
    colours = colormaps[bool((a < 0).any() or (b < 0).any())]
    sort = order if isinstance(order, str) else "index"
    grid_a, grid_b = (
        make_grid(maps, sort=sort, top=top, colormap=colours, limits=limits, title=title)
        for maps, limits, title in zip((a, b), _shared(a, b, scale), titles, strict=True)
    )
    if a.shape != b.shape:
        return Pair(grid_a, grid_b, None)
    shown = [*(grid_b.order if isinstance(order, str) else order)][:top]

    def draw_difference() -> Grid:
        with np.errstate(invalid="ignore", over="ignore"):
            changed = b - a
        title = f"{titles[1]} − {titles[0]}"
        # one outlier leaves the others their colours; without a fall zero is no end of the colours
        spans = "balanced" if (changed < 0).any() else "symmetric"
        grid = make_grid(changed, scale=spans, colormap=colormaps[1], title=title)
        return replace(with_channels(grid, changed, shown), about=f"B − A: {say(_RAISES)}.")

    return Pair(with_channels(grid_a, a, shown), with_channels(grid_b, b, shown), draw_difference)


def why_unlike(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """Say why two shapes, ``(C, H, W)``, can't be compared cell by cell.

    >>> from hookviz.drawing.pair import why_unlike
    >>> why_unlike((64, 56, 56), (64, 28, 28))
    'A has 64 maps of 56×56 and B 64 of 28×28; for a difference both need one shape.'
    """
    return say(
        "A has {count_a:,} maps of {shape_a} and B {count_b:,} of {shape_b}; for a difference "
        "both need one shape.",
        count_a=a[0],
        shape_a=times(a[1:]),
        count_b=b[0],
        shape_b=times(b[1:]),
    )


def _shared(a: NDArray[np.float32], b: NDArray[np.float32], scale: str) -> tuple[Limits, Limits]:
    """Return the limits of each on a scale of all values of both."""
    if scale == "channel" and len(a) != len(b):
        return limits(a, channel_stats(a), scale), limits(b, channel_stats(b), scale)
    if len(a) == len(b):
        both = np.concatenate([each.reshape(len(each), 1, -1) for each in (a, b)], axis=2)
        shared = limits(both, channel_stats(both), scale)
        return shared, shared
    both = np.concatenate([each.reshape(1, 1, -1) for each in (a, b)], axis=2)
    shared = limits(both, channel_stats(both), scale)
    low, high = shared.low[0], shared.high[0]
    of_a, of_b = (
        Limits(scale, np.full(len(each), low), np.full(len(each), high), shared.clipped)
        for each in (a, b)
    )
    return of_a, of_b


def before_and_after(
    layer: str, before: _Map, after: _Map, unmoved: str = ""
) -> tuple[GridPanel, GridPanel]:
    """Return two grids that the page flips between in one place.

    Both are ``(C, H, W)``. Where nothing changed, `unmoved` is the text; else it is the largest
    change.
    """
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        moved = np.abs(after - before)
    said = unmoved
    if np.nan_to_num(moved).any():
        said = say(
            "largest change {value}; colours as before.", value=number(float(np.nanmax(moved)))
        )
    both = make_grid(np.concatenate([before, after]), scale="symmetric").limits
    shared = replace(both, low=both.low[: len(before)], high=both.high[: len(before)])
    first, second = (
        replace(make_grid(maps, scale="symmetric", limits=shared, title=layer), limits=shared)
        for maps in (before, after)
    )
    return (
        GridPanel(layer, first, layer=layer, state=say("before")),
        GridPanel(layer, second, said, layer, say("after")),
    )
