"""Say how a view has channels drawn: order, how many, scale and colours, all of them decided."""

from dataclasses import dataclass

from hookviz.drawing.grid import Grid, ScaleLock, draw_on_scale
from hookviz.drawing.statistics import SORTS
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import ALL, AUTOMATIC, CHANGE, View, choices
from hookviz.types import Activation


@dataclass(frozen=True, slots=True)
class Look:
    """How channels are drawn: the arguments of `make_grid`, by the same names.

    Attributes:
        sort: one of `SORTS`, or `CHANGE`.
        top: how many channels are shown; None for all.
        scale: one of `SCALES`.
        colormap: of a layer that is nowhere below zero.
        signed_colormap: of one that has values below zero.
        of_difference: of what is below zero in a pair, and of its difference.
    """

    sort: str
    top: int | None
    scale: str
    colormap: str
    signed_colormap: str
    of_difference: str

    def draw(
        self, activation: Activation, held: ScaleLock | None, depth: int | None = None
    ) -> Grid:
        """Draw an activation so; `held` is a scale to do it on, `depth` which slice of a volume.

        By default, and where there is no such one, that is the middle.
        """
        return draw_on_scale(
            activation,
            sort=self.sort,
            top=self.top,
            scale=self.scale,
            colormap=self.colormap,
            signed_colormap=self.signed_colormap,
            held=held,
            depth=depth,
        )


def look_of(view: View, colours: Colours, channels: int) -> Look:
    """Decide what a view leaves open.

    One language of colours everywhere: blue below zero, red above, zero neutral, be the page dark
    or light. A layer that is nowhere negative runs from the page's own black or white at 0.

    Args:
        view: what is chosen.
        colours: of the page.
        channels: how many the layer has; as many or more to be shown are all of them.
    """
    chosen = None if view.colours == AUTOMATIC else view.colours
    return Look(
        sort=view.sort,
        top=view.top if view.top is not None and view.top < channels else None,
        scale="balanced" if view.scale == AUTOMATIC else view.scale,
        colormap=chosen or colours.sequential,
        signed_colormap=chosen or colours.diverging,
        of_difference=colours.diverging,
    )


def tops(channels: int) -> tuple[str, ...]:
    """Return how many of that many channels can be shown, as a link writes it: all of them first.

    >>> tops(64)
    ('all', '16')
    """
    counts = choices()["top"].values or ()
    return tuple(count for count in counts if count == ALL or int(count) < channels)


def sorts(*, alike: bool) -> tuple[str, ...]:
    """Return what channels can be sorted by; those of a pair of one shape by how they changed."""
    return (*SORTS, CHANGE) if alike else tuple(SORTS)
