"""The colormaps on offer, the words for their colours, and the colours beside them."""

from dataclasses import dataclass

LEVELS = 253  # odd, so that zero on a symmetric scale lies in the middle of the middle level


NAN_LEVEL, INF_LEVEL, GAP_LEVEL = 253, 254, 255


@dataclass(frozen=True, slots=True)
class Colormap:
    """A colormap of matplotlib and the words for its colours.

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
        Colormap("viridis", "dark violet", "teal", "yellow"),
        Colormap("cividis", "dark blue", "grey", "yellow"),
        Colormap("magma", "black", "crimson", "pale yellow"),
        Colormap("inferno", "black", "crimson", "pale yellow"),
        Colormap("gray", "black", "grey", "white"),
        Colormap("gray_r", "white", "grey", "black"),
        Colormap("RdBu_r", "blue", "white", "red", diverging=True),
        Colormap("coolwarm", "blue", "light grey", "red", diverging=True),
        Colormap("berlin", "light blue", "black", "pink", diverging=True),
    )
}
"""The colormaps on offer: for values of any kind, then the diverging ones for signed values."""


NAN_COLOUR, INF_COLOUR = "#ff00ff", "#00ffff"  # nowhere near any of the colormaps above


NAN_WORD, INF_WORD = "magenta", "cyan"
