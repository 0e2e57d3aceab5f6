"""Draw one channel as a page for print: its map, its place on the image, its histogram, numbers."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import ACCENT
from hookviz.drawing.figures import figure_file, new_figure
from hookviz.drawing.grid import Grid
from hookviz.drawing.overlay import overlay
from hookviz.drawing.statistics import histogram
from hookviz.errors import SettingError
from hookviz.language.saying import say
from hookviz.types import Crop, Pixels
from hookviz.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 200


def numbers(grid: Grid, channel: int, values: NDArray[np.float32]) -> dict[str, str]:
    """Return a channel's statistics by name, as people read them.

    Over its finite values, ``(H, W)``; the rank is among all channels of the layer by maximum.
    """
    finite = values[np.isfinite(values)].astype(np.float64)
    if not finite.size:
        return {say("finite values"): say("none")}
    stats = grid.stats
    rank = 1 + int((stats.maximum > stats.maximum[channel]).sum())
    return {
        say("minimum"): number(finite.min()),
        say("mean"): number(finite.mean()),
        say("maximum"): number(finite.max()),
        say("standard deviation"): number(finite.std()),
        say("zeros"): say("{share:.0f} %", share=100 * stats.zeros[channel]),
        say("rank by maximum"): say("{rank} of {count}", rank=rank, count=len(stats)),
    }


def channel_csv(values: NDArray[np.float32]) -> str:
    """Write a map, ``(H, W)``, as CSV: a line for a row of cells, with all digits of float32.

    ``numpy.loadtxt(…, delimiter=",", dtype="float32")`` reads back the very same numbers.
    """
    return "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in values.tolist())


def channel_page(
    grid: Grid,
    channel: int,
    values: NDArray[np.float32],
    *,
    image: Pixels | None = None,
    crop: Crop | None = None,
    title: str = "",
    format: str = "png",  # noqa: A002 - as Grid.figure_bytes
) -> bytes:
    """Draw one channel of a grid as a file for print: ``"png"``, ``"pdf"`` or ``"svg"``.

    The same bytes every time as PNG and PDF. Threads draw one after the other.

    The map of the channel, `values`, is ``(H, W)``. `image` is the original, RGB uint8,
    ``(h, w, 3)``, and `crop` the part of it that the network saw; without an image the map alone is
    drawn.

    Raises:
        HookVizError: the channel is not among those shown.
        SettingError: `format` is not in `FORMATS`.
    """
    coloured = grid.channel_pixels(channel)
    if values.shape != grid.shape[1:]:
        raise SettingError(
            say(
                "values of shape {shape} are no map of {map_shape}.",
                shape=values.shape,
                map_shape=grid.shape[1:],
            )
        )

    def draw() -> "Figure":
        pictures = 2 if image is not None and crop is not None else 1
        figure = new_figure(figsize=(3.6 * (pictures + 1), 4.4), layout="constrained", dpi=_DPI)
        axes = figure.subplots(1, pictures + 1)
        heading = title or say("{grid}, channel {channel}", grid=grid.title, channel=channel)
        figure.suptitle("\n".join(textwrap.wrap(heading, 40 * pictures)), fontsize=11)
        _draw_map(figure, axes[0], grid, channel, coloured)
        if image is not None and crop is not None:
            axes[1].imshow(overlay(image, coloured, crop))
            axes[1].set_title(say("on the image"), fontsize=9)
            axes[1].set_axis_off()
        _draw_numbers(axes[-1], numbers(grid, channel, values), values)
        return figure

    return figure_file(draw, format, dpi=_DPI)


def _draw_map(figure: "Figure", axes: "Axes", grid: Grid, channel: int, coloured: Pixels) -> None:
    axes.imshow(coloured, interpolation="nearest")
    axes.set_title(
        say("{height}×{width} cells", height=coloured.shape[0], width=coloured.shape[1]),
        fontsize=9,
    )
    axes.set_xlabel("column", fontsize=8)
    axes.set_ylabel("row", fontsize=8)
    axes.tick_params(labelsize=7)
    low, high = float(grid.limits.low[channel]), float(grid.limits.high[channel])
    if low < high:
        from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
        from matplotlib.colors import Normalize  # noqa: PLC0415

        scale = ScalarMappable(Normalize(low, high), grid.colormap.name)
        bar = figure.colorbar(scale, ax=axes, orientation="horizontal", shrink=0.9)
        bar.ax.tick_params(labelsize=7)


def _draw_numbers(axes: "Axes", said: dict[str, str], values: NDArray[np.float32]) -> None:
    bins = histogram(values)
    if bins.counts.any():
        axes.hist(bins.middles, bins=bins.edges.tolist(), weights=bins.counts, color=ACCENT)
    axes.set_title(say("{size:,} values", size=values.size), fontsize=9)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    text = "\n".join(f"{name}: {value}" for name, value in said.items())
    axes.text(0, -0.12, text, transform=axes.transAxes, fontsize=8, va="top", linespacing=1.5)
