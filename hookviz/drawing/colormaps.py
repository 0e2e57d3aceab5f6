"""List the colormaps on offer, the words for their colours, and the colours beside them."""

from dataclasses import dataclass

from hookviz.language.saying import mark

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
