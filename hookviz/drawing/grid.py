"""Draw an activation: `make_grid` gives a `Grid`, which becomes a PNG or a `Figure`.

`grid_of_any` does the same with bare numbers of sound, a volume or a clip, `with_channels` draws
some channels of a grid in a given order, `draw_on_scale` draws on the scale of an earlier grid, and
`tile_facts` is the JSON from which a browser lays out and paints the tiles.

The PNG for the screen is one mosaic of palette indices and never passes through matplotlib, whose
one-axes-per-channel way takes hundreds of times as long. The `Figure` is for print.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing import grid_page, scales
from hookviz.drawing.colormaps import (
    COLORMAPS,
    GAP_LEVEL,
    INF_LEVEL,
    LEVELS,
    NAN_LEVEL,
    Colormap,
    palette_of,
    palette_png,
    quantise,
)
from hookviz.drawing.dimensions import (
    as_float32,
    as_maps,
    check_channels_first,
    middle_slice,
    no_map_note,
)
from hookviz.drawing.figures import check_dpi, figure_file
from hookviz.drawing.layout import Geometry, lay_out, mosaic
from hookviz.drawing.scales import Limits, limits_for
from hookviz.drawing.statistics import CHOSEN, ChannelStats, Levels, channel_stats, chosen, order
from hookviz.errors import HookVizError, SettingError, one_of
from hookviz.language.saying import say, say_count, sentences
from hookviz.markup import data_url
from hookviz.types import UNKNOWN, Activation, ActivationKey, Layout, Model, Pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


_PACKS = 0.2  # share of zeros from which a sprite is worth packing


@dataclass(frozen=True, eq=False)
class Grid:
    """Grid of one activation's channels, laid out and coloured; read-only and safe to share.

    Attributes:
        address: where the activation was recorded; None for a bare tensor or array.
        title: what the picture is called.
        shape: of the activation, ``(C, H, W)``.
        sort: what the channels are sorted by; ``"chosen"`` where ``channels=`` lists them.
        order: the channel numbers shown, place by place, ``(N,)``.
        geometry: where each place lies in the picture.
        stats: numbers per channel, of all C.
        limits: the values that the end colours stand for, per channel, of all C.
        colormap: the colormap with the words for its colours.
        levels: palette index of every cell shown, uint8, ``(N, H, W)``.
        palette: RGBA of every palette index, uint8, ``(256, 4)``; the gap's is transparent.
        layout: of the layer's output.
        about: a sentence on what a tile is, where it is a strip of sound, a slice of a volume or no
            map at all.
        depth: which slice of a volume it shows, or frame of video; None for other shapes.
    """

    address: ActivationKey | None
    title: str
    shape: tuple[int, int, int]
    sort: str
    order: NDArray[np.intp] = field(repr=False)
    geometry: Geometry
    stats: ChannelStats = field(repr=False)
    limits: Limits = field(repr=False)
    colormap: Colormap
    levels: Levels = field(repr=False)
    palette: Levels = field(repr=False)
    about: str = ""
    layout: Layout = UNKNOWN
    depth: int | None = None

    @cached_property
    def shown(self) -> str:
        """Part of the layer that is shown: ``"64 of 512 shown"`` or ``"all 64 channels"``."""
        total = self.shape[0]
        if len(self.order) < total:
            return say("{count:,} of {total:,} shown", count=len(self.order), total=total)
        return say_count("{count} channel", "all {count:,} channels", total)

    @cached_property
    def legend(self) -> str:
        """Meaning of the colours, in one sentence with real numbers."""
        meaning = scales.legend(self.limits, self.stats, self.colormap)
        return sentences(self.about, meaning)

    @cached_property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Marks for the colour bar: (fraction from its low end, label)."""
        if self.limits.scale == "channel" and self.shape[0] > 1:
            return (0.0, say("lowest")), (1.0, say("highest"))
        return self.ticks_of(0)

    def ticks_of(self, channel: int) -> tuple[tuple[float, str], ...]:
        """Return marks for the colour bar of one channel, in real values whatever the scale."""
        return scales.ticks(float(self.limits.low[channel]), float(self.limits.high[channel]))

    def channel_at(self, x: float, y: float) -> tuple[int, int, int] | None:
        """Return the (channel, row, column) under pixel (x, y) of the PNG; None under no tile."""
        cell = self.geometry.locate(x, y)
        return cell and (int(self.order[cell[0]]), cell[1], cell[2])

    def png(self) -> bytes:
        """Encode the mosaic as a palette PNG; gaps and empty places are transparent.

        >>> grid = hookviz.make_grid(torch.rand(16, 8, 8))  # (C, H, W)
        >>> grid.png()[1:4]
        b'PNG'
        """
        return palette_png(mosaic(self.levels, self.geometry, GAP_LEVEL), self.palette)

    @cached_property
    def sprite(self) -> bytes:
        """Palette PNG of the mosaic with one pixel per cell, for who lays the tiles out anew."""
        # The maps of a convolution pack to 92 to 99 of 100 bytes, those behind a ReLU to 60.
        packing = "quick" if np.nan_to_num(self.stats.zeros).mean() > _PACKS else "none"
        picture = mosaic(self.levels, self.sprite_geometry, GAP_LEVEL)
        return palette_png(picture, self.palette, packing=packing)

    def coloured(self, colormap: str) -> "Grid":
        """Return the same grid in another colormap, such as one for a dark page.

        Raises:
            SettingError: `colormap` is not in `COLORMAPS`.
        """
        colours = COLORMAPS[one_of(say("colormap"), colormap, COLORMAPS)]
        return replace(self, colormap=colours, palette=palette_of(colormap))

    @property
    def sprite_geometry(self) -> Geometry:
        """Geometry of the tiles in the sprite."""
        return replace(self.geometry, magnification=1)

    def _repr_png_(self) -> bytes:
        """Return the mosaic, for a notebook."""
        return self.png()

    def channel_pixels(self, channel: int) -> Pixels:
        """Colour one shown channel, RGB uint8, ``(H, W, 3)``: a pixel for every cell.

        Raises:
            HookVizError: the channel is not among those shown.
        """
        pixels: Pixels = self.palette[self._levels_of(channel), :3]
        return pixels

    def channel_png(self, channel: int, magnification: int = 8) -> bytes:
        """Encode one shown channel as a palette PNG, every cell `magnification` pixels square.

        Raises:
            HookVizError: the channel is not among those shown.
            SettingError: `magnification` is not a whole number from 1 to 256.
        """
        if not isinstance(magnification, int) or not 1 <= magnification <= 256:
            raise SettingError(
                say(
                    "magnification={magnification!r} is not a whole number, 1 to 256.",
                    magnification=magnification,
                )
            )
        levels = self._levels_of(channel)
        return palette_png(levels.repeat(magnification, 0).repeat(magnification, 1), self.palette)

    def _levels_of(self, channel: int) -> Levels:
        positions = np.flatnonzero(self.order == channel)
        if not len(positions):
            raise HookVizError(
                say(
                    "Channel {channel} is not in this grid: {channels}, of channels 0 to {last}. "
                    "Make the grid without top= and channels= to have them all.",
                    channel=channel,
                    channels=self.shown,
                    last=self.shape[0] - 1,
                )
            )
        levels: Levels = self.levels[positions[0]]
        return levels

    def bar(self, width: int = 256, height: int = 12) -> bytes:
        """Encode the colour bar as a palette PNG, the low end at the left."""
        row = (np.arange(width) * LEVELS // width).astype(np.uint8)
        return palette_png(np.broadcast_to(row, (height, width)), self.palette)

    def draw(self, axes: "Axes") -> "ScalarMappable":
        """Draw the numbered tiles into axes of your own, and return the scale for a colour bar.

        No cell is blurred, and the axes' frame and ticks are turned off. Channel numbers have 7
        points; those of narrow tiles are smaller, and left out below 4 points.

        Args:
            axes: of matplotlib, as large as they will be in the end: the numbers are fitted in.

        Raises:
            HookVizError: the tiles shown have no common scale, which a colour bar would show.
            SettingError: `axes` are no matplotlib axes.

        >>> from matplotlib.figure import Figure
        >>> paper = Figure(figsize=(3.3, 2))
        >>> axes = paper.add_subplot()
        >>> grid = hookviz.make_grid(torch.randn(32, 8, 8), channels=[3, 17], limits=(-5, 5))
        >>> paper.colorbar(grid.draw(axes), ax=axes).norm.vmax
        5.0
        """
        return grid_page.draw_tiles(self, axes)

    def figure(self, *, dpi: int = 300, title: str | None = None) -> "Figure":
        """Draw a page for print: title, numbered tiles, colour bar and legend.

        At `dpi` dots per inch every cell is a whole number of dots, so none is dropped or blurred.
        The mosaic is about 10 × 6.5 inches, and larger where that has fewer dots than cells.
        Channels are numbered one by one, or along the rows and columns where more than 256 stand
        in the layer's own order.

        Raises:
            SettingError: `dpi` is not a whole number from 50 to 600.

        >>> import io
        >>> grid = hookviz.make_grid(torch.rand(16, 8, 8), title="noise")  # (C, H, W)
        >>> file = io.BytesIO()
        >>> grid.figure(dpi=100).savefig(file, format="pdf")
        >>> file.getvalue()[:4]
        b'%PDF'
        """
        check_dpi(dpi)
        return grid_page.GridPage(self, self.title if title is None else title, dpi).draw()

    def figure_bytes(self, format: str = "png", dpi: int = 300, title: str | None = None) -> bytes:  # noqa: A002
        """Write the `figure` as a file: ``"png"``, ``"pdf"`` or ``"svg"``.

        PNG and PDF are the same bytes every time. Threads draw one after the other.

        Raises:
            SettingError: `format` is not in `FORMATS`, or `dpi` is not from 50 to 600.
        """
        return figure_file(lambda: self.figure(dpi=dpi, title=title), format, dpi=dpi)


def make_grid(
    activation: Activation | Tensor | NDArray[np.generic],
    *,
    sort: str = "index",
    top: int | None = None,
    channels: Iterable[int] | None = None,
    scale: str = "layer",
    colormap: str | None = None,
    aspect: float = 1.6,
    width: int = 1200,
    title: str | None = None,
    depth: int | None = None,
    limits: Limits | tuple[float, float] | None = None,
) -> Grid:
    """Draw the channels of an activation, ``(C, H, W)``, as one picture.

    Of sound, an activation of ``(C, L)``, each channel is a strip; of a volume, ``(C, D, H, W)``,
    the slice at `depth` is drawn. What a layer put out of which nobody knows the rows and columns
    is drawn as the numbers lie, a tile for each part along its first axis. The legend says so.

    Values are drawn as float32. Without `colormap` it is ``"RdBu_r"`` for the symmetric scale and
    ``"viridis"`` for the others.

    Args:
        activation: what `capture` gives, or a tensor or array of real numbers.
        sort: one of `SORTS`.
        top: how many channels to show, the first ones in that order; None shows all.
        channels: numbers of the channels to show, in this order, in place of `sort` and `top`.
        scale: one of `SCALES`.
        colormap: one of `COLORMAPS`.
        aspect: width / height that the mosaic should come close to.
        width: pixels that its width should come close to.
        title: what to call it; without, the activation's address.
        depth: which slice of a volume, from 0.
        limits: the values of the end colours, ``(low, high)``, or those of another grid of as many
            channels, so that the same colour means the same value in both; they take the place of
            `scale`.

    Raises:
        HookVizError: the values are not ``(C, H, W)``, such as a linear layer's, or have their
            channels last, or are empty, or not real numbers; or the limits are of another number
            of channels.
        SettingError: an option has a value that means nothing.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg", "stem.first.conv")
    >>> grid = hookviz.make_grid(cap["stem.first.conv"], sort="max", top=4)  # of (32, 64, 64)
    >>> grid.shown, grid.order.tolist()
    ('4 of 32 shown', [3, 13, 14, 2])
    >>> hookviz.make_grid(cap["stem.first.conv"], channels=[17, 3], limits=(-5, 5)).order.tolist()
    [17, 3]
    """
    automatic = "RdBu_r" if scale == "symmetric" else "viridis"
    colours = COLORMAPS[one_of(say("colormap"), colormap or automatic, COLORMAPS)]
    address = activation.address if isinstance(activation, Activation) else None
    values, about = as_float32(activation), ""
    if isinstance(activation, Activation):
        check_channels_first(activation)
    if address is not None or depth is not None:  # a bare matrix may be anything
        values, about = as_maps(values, depth, of=str(address or ""))
    if isinstance(activation, Activation):
        about = no_map_note(activation) or about
    stats = channel_stats(values)
    bounds = scales.limits(values, stats, scale) if limits is None else limits_for(limits, stats)
    count, height, breadth = values.shape
    if channels is None:
        places = order(stats, sort, top)
    else:
        places, sort = chosen(channels, count, sort, top), CHOSEN
    geometry = lay_out(len(places), height, breadth, aspect=aspect, width=width)
    whole = sort == "index" and len(places) == count
    shown = values if whole else values[places]
    levels = quantise(shown, bounds.low[places], bounds.high[places])
    levels.flags.writeable = False
    return Grid(
        address=address,
        title=str(address or "") if title is None else title,
        shape=(count, height, breadth),
        sort=sort,
        order=places,
        geometry=geometry,
        stats=stats,
        limits=bounds,
        colormap=colours,
        levels=levels,
        palette=palette_of(colours.name),
        about=about,
        layout=activation.layout if isinstance(activation, Activation) else UNKNOWN,
        depth=depth,
    )


def grid_of_any(values: NDArray[Any], **options: Any) -> Grid:
    """Draw ``(C, H, W)`` directly, ``(C, L)`` as strips, of ``(C, D, H, W)`` one slice.

    `options` are those of `make_grid`.

    The slice is the one with the largest |value|; the grid says which.

    >>> grid_of_any(np.zeros((2, 7))).shape
    (2, 1, 7)
    """
    if values.ndim == 2:
        return make_grid(values[:, None], **options)
    if values.ndim == 4:
        largest = np.nan_to_num(np.abs(values)).max((0, 2, 3))
        return make_grid(values, depth=int(largest.argmax()), **options)
    return make_grid(values, **options)


def with_channels(grid: Grid, maps: NDArray[np.float32], channels: Sequence[int]) -> Grid:
    """Return the grid with some of its channels, as ordered, in the whole layer's colours.

    `grid` is of all `maps`, ``(C, H, W)``, in any order.
    """
    listed = list(channels)
    levels = quantise(maps[listed], grid.limits.low[listed], grid.limits.high[listed])
    levels.flags.writeable = False
    is_sorted = grid.sort != "index" or listed == sorted(listed)
    return replace(
        grid,
        sort=grid.sort if is_sorted else CHOSEN,
        order=np.array(channels, np.intp),
        geometry=lay_out(len(channels), *maps.shape[1:]),
        levels=levels,
    )


@dataclass(slots=True)
class ScaleLock:
    """Colour scale of a stream while a person wants it held, and what it belongs to.

    Attributes:
        of: the layer and the scale, by `scale_of`.
        limits: the values of the end colours; None before the first frame.
        signed: whether that frame's layer had values below zero.
    """

    of: tuple[object, ...] = ()
    limits: Limits | None = None
    signed: bool = False


def scale_of(model: Model, activation: Activation, scale: str) -> tuple[object, ...]:
    """Return what has to stay the same for a scale to be held: network, layer, shape and policy."""
    shape = tuple(activation.values.shape)
    return model.name, model.digest, str(activation.address), scale, shape


def draw_on_scale(
    activation: Activation,
    *,
    colormap: str,
    signed_colormap: str | None,
    held: ScaleLock | None,
    depth: int | None = None,
    **options: Any,
) -> Grid:
    """Draw an activation, of a volume one slice, in the colours that its signs ask for.

    `signed_colormap` is for an activation with values below zero, None for `colormap`. `held` is
    the scale to draw on, None for the activation's own. Without a slice at `depth` the middle one
    is drawn. The `options` are others of `make_grid`.
    """
    signed = held.signed if held else bool((activation.values < 0).any())
    return make_grid(
        activation,
        colormap=(signed_colormap if signed else None) or colormap,
        depth=middle_slice(tuple(activation.values.shape), depth),
        limits=held.limits if held else None,
        **options,
    )


def tile_facts(grid: Grid, alt: str, sprite: bytes) -> dict[str, Any]:
    """Return the facts, ready for JSON; numbers per channel are in the order of the tiles.

    `alt` describes the picture to a screen reader; `sprite` is the grid's own picture, or a pair's.
    """
    geometry, order = grid.sprite_geometry, grid.order
    red, green, blue = (grid.palette[:, band].astype(int) for band in range(3))
    return {
        "key": hashlib.blake2b(sprite, digest_size=8).hexdigest(),
        "alt": alt,
        "geometry": geometry_facts(geometry),
        "order": order.tolist(),
        "stats": channel_facts(grid),
        "limits": {
            "low": json_numbers(grid.limits.low[order]),
            "high": json_numbers(grid.limits.high[order]),
        },
        "palette": (red * 65536 + green * 256 + blue)[:255].tolist(),
        "levels": LEVELS,
        "nan": NAN_LEVEL,
        "infinity": INF_LEVEL,
        "bar": data_url(grid.bar()),
        "ticks": [[fraction, label] for fraction, label in grid.ticks],
    }


def geometry_facts(geometry: Geometry) -> dict[str, Any]:
    """Return the geometry of the tiles in a picture, ready for JSON."""
    return {
        "columns": geometry.columns,
        "tile": [geometry.tile_height, geometry.tile_width],
        "pitch": list(geometry.pitch),
        "width": geometry.width,
        "height": geometry.height,
    }


def channel_facts(grid: Grid) -> dict[str, list[float | None]]:
    """Return each channel's statistics, in the order of the tiles."""
    stats = grid.stats
    numbers = {
        "lowest": stats.minimum,
        "mean": stats.mean,
        "highest": stats.maximum,
        "zeros": stats.zeros,
    }
    return {name: json_numbers(values[grid.order]) for name, values in numbers.items()}


def json_numbers(values: NDArray[np.floating[Any]]) -> list[float | None]:
    """Round to the digits that float32 has; None where there is no number, for JSON has no NaN."""
    return [float(f"{value:.8g}") if value == value else None for value in values.tolist()]  # noqa: PLR0124
