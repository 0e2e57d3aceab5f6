"""Hold a colour scale from one picture to the next, as long as they are of the same thing."""

from dataclasses import dataclass

from hookviz.drawing.dimensions import middle_slice
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.scales import Limits
from hookviz.types import Activation, Model


@dataclass(slots=True)
class Held:
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
    sort: str,
    top: int | None,
    scale: str,
    colormap: str,
    signed_colormap: str | None,
    held: Held | None,
    depth: int | None = None,
) -> Grid:
    """Draw an activation, of a volume one slice, in the colours that its signs ask for.

    Args:
        activation: a layer's.
        sort: as `make_grid` has it.
        top: as `make_grid` has it.
        scale: as `make_grid` has it.
        colormap: of an activation that is nowhere below zero.
        signed_colormap: of one that has values below zero; None for `colormap`.
        held: the scale to draw on, with its limits; None for the activation's own.
        depth: which slice; the middle one where there is none such.
    """
    signed = held.signed if held else bool((activation.values < 0).any())
    return make_grid(
        activation,
        sort=sort,
        top=top,
        scale=scale,
        colormap=(signed_colormap if signed else None) or colormap,
        depth=middle_slice(tuple(activation.values.shape), depth),
        limits=held.limits if held else None,
    )
