"""List the colormaps on offer, quantise values to their levels, and write these as PNG files.

A *level* is an index into a palette of 256 colours: 0 to `LEVELS` − 1 run through the colormap,
and the rest are reserved.
"""

import io
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.drawing.statistics import Floats, Levels, channel_stats
from hookviz.errors import one_of
from hookviz.language.saying import mark, say
from hookviz.types import Pixels

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap


LEVELS = 253  # odd, so that zero on a symmetric scale lies in the middle of the middle level


NAN_LEVEL, INF_LEVEL, GAP_LEVEL = 253, 254, 255


@dataclass(frozen=True, slots=True)
class Colormap:
    """Colormap of matplotlib with the words for its colours.

    All of them change evenly to the eye from end to end, and are told apart with every common
    kind of colour blindness.
    """

    name: str
    low: str
    middle: str
    high: str
    diverging: bool = False


COLORMAPS = {
    colormap.name: colormap
    for colormap in (
        Colormap("viridis", mark("dark violet"), mark("teal"), mark("yellow")),
        Colormap("cividis", mark("dark blue"), mark("grey"), mark("yellow")),
        Colormap("magma", mark("black"), mark("crimson"), mark("pale yellow")),
        Colormap("inferno", mark("black"), mark("crimson"), mark("pale yellow")),
        Colormap("gray", mark("black"), mark("grey"), mark("white")),
        Colormap("gray_r", mark("white"), mark("grey"), mark("black")),
        Colormap("RdBu_r", mark("blue"), mark("white"), mark("red"), diverging=True),
        Colormap("coolwarm", mark("blue"), mark("light grey"), mark("red"), diverging=True),
        Colormap("berlin", mark("light blue"), mark("black"), mark("pink"), diverging=True),
    )
}
"""The colormaps on offer: for values of any kind, then the diverging ones for signed values."""


PROJECTED, PROJECTED_SIGNED = "viridis", "coolwarm"
"""Those for a projector: of all on offer they lose least in a lit room, to whichever eye.

A projector's black is the wall's grey, in which dark colours become one.
"""


NAN_COLOUR, INF_COLOUR = "#ff00ff", "#00ffff"  # nowhere near any of the colormaps above


NAN_WORD, INF_WORD = mark("magenta"), mark("cyan")

ACCENT, CONTRAST = "#1f9a9d", "#c2603c"
"""Colours of HookViz itself, where a picture needs one that no map has.

Of bars and frames, and of what goes the other way; both are seen on dark and on light.
"""

BELOW, ABOVE = "#3b7dc0", "#c94741"
"""Of bars below and above zero, as the maps have them: blue and red."""


@lru_cache
def palette_of(name: str) -> Levels:
    """Return RGBA of every level, uint8, ``(256, 4)``, read-only."""
    import matplotlib as mpl  # noqa: PLC0415 - takes 0.2 s, which only pictures need

    palette = np.zeros((256, 4), dtype=np.uint8)
    known = mpl.colormaps[name] if name in mpl.colormaps else berlin()
    palette[:LEVELS] = known.resampled(LEVELS)(np.arange(LEVELS), bytes=True)
    for level, colour in (
        (NAN_LEVEL, NAN_COLOUR),
        (INF_LEVEL, INF_COLOUR),
    ):
        palette[level] = *bytes.fromhex(colour[1:]), 255
    palette.flags.writeable = False
    return palette


def berlin() -> "LinearSegmentedColormap":
    """Return the colour map of that name, which matplotlib has from 3.10 on: within 3 levels of it.

    These are its colours at 17 places; it is Fabio Crameri's, as matplotlib's is.
    """
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    places = (
        *("9eaffe", "78abed", "519fd3", "3585ac", "276785", "1d4a60", "13303e", "10191f", "190b08"),
        *("2a0d00", "401200", "5b1c07", "7d331e", "9e513f", "bd6f63", "df8e88", "feadad"),
    )
    return LinearSegmentedColormap.from_list("berlin", [f"#{colour}" for colour in places], LEVELS)


def quantise(values: NDArray[np.float32], low: Floats, high: Floats) -> Levels:
    """Quantise values to levels, uint8, ``(N, H, W)``; `low` and `high` are per channel, ``(N,)``.

    The range is cut into `LEVELS` equal parts, as matplotlib does: `low` is level 0, `high` and
    above are the last one, below `low` is 0. A channel whose `low` and `high` are equal gets level
    0 everywhere, so a dead channel is never bright. NaN and ±∞ get levels of their own.
    """
    span = high - low
    varying = span > 0
    # float32 is quicker, and exact enough as long as neither the span nor its inverse overflows
    gentle = not varying.any() or (span[varying].min() > 1e-30 and span.max() < 1e38)
    kind = np.float32 if gentle else np.float64
    factor = np.divide(LEVELS, span, out=np.zeros_like(span), where=varying).astype(kind)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled = np.subtract(values, low.astype(kind)[:, None, None], dtype=kind)
        scaled *= factor[:, None, None]
        np.clip(scaled, 0, LEVELS - 1, out=scaled)
    finite = np.isfinite(values)
    spoilt = not finite.all()
    if spoilt:
        scaled[~finite] = 0
    levels: Levels = scaled.astype(np.uint8)
    if spoilt:
        levels[np.isnan(values)] = NAN_LEVEL
        levels[np.isinf(values)] = INF_LEVEL
    return levels


def palette_png(picture: Levels, palette: Levels, *, packing: str = "small") -> bytes:
    """Encode palette indices, uint8 ``(height, width)``, as a PNG file.

    Where hardly a pixel is like its neighbour, the packing ``"quick"`` takes half of the time or
    less, for a file that is a few hundredths larger or smaller. ``"none"`` takes a tenth of that.
    """
    height, width = picture.shape
    image = Image.frombuffer("P", (width, height), picture.tobytes(), "raw", "P", 0, 1)
    image.putpalette(palette[:, :3].tobytes())
    file = io.BytesIO()
    # Level 1 is a quarter larger than level 6 and five times as fast.
    how = {"compress_level": 0} if packing == "none" else {"compress_level": 1}
    if packing == "quick":
        how["compress_type"] = zlib.Z_RLE
    image.save(file, "PNG", transparency=palette[:, 3].tobytes(), **how)
    return file.getvalue()


def coloured(
    values: NDArray[np.floating[Any]],
    colormap: str = "inferno",
    *,
    low: float | None = None,
    high: float | None = None,
) -> Pixels:
    """Colour one map, ``(H, W)``, as RGB uint8, ``(H, W, 3)``: a pixel for every cell.

    The end colours stand for `low` and `high`, by default the map's own finite extremes. NaN and
    infinities have the colours that they have in a grid.

    Raises:
        HookVizError: the values are not ``(H, W)`` or empty.
        SettingError: `colormap` is not one of `COLORMAPS`.
    """
    name = COLORMAPS[one_of(say("colormap"), colormap, COLORMAPS)].name
    stats = channel_stats(np.asarray(values, np.float32)[None])
    ends = (
        float(stats.minimum[0] if low is None else low),
        float(stats.maximum[0] if high is None else high),
    )
    levels = quantise(np.asarray(values, np.float32)[None], *(np.array([end]) for end in ends))
    picture: Pixels = palette_of(name)[levels[0], :3]
    return picture
