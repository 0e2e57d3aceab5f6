"""Draw what a view shows: a layer's channels by themselves, or beside those pinned as A.

A stream's held scale is written into a view here, and drawn on again where the same layer is shown.
"""

import hashlib
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from hookviz.drawing.dimensions import middle_maps, middle_slice
from hookviz.drawing.grid import Grid, ScaleLock, scale_of
from hookviz.drawing.pair import Pair
from hookviz.drawing.scales import Limits
from hookviz.drawing.statistics import SORTS
from hookviz.errors import HookVizError
from hookviz.explorer.layers import Looked, captured, resolve
from hookviz.explorer.look import Look, look_of
from hookviz.explorer.pair import PinnedPair, pinned_pair
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import HeldScale, View
from hookviz.language.speaking import current
from hookviz.types import Activation, Capture


def held_in_view(held: ScaleLock | None) -> HeldScale | None:
    """Return a held scale as a view has it; None where each channel has one of its own."""
    limits = None if held is None else held.limits
    if held is None or limits is None:
        return None
    low, high = float(limits.low[0]), float(limits.high[0])
    if (limits.low != low).any() or (limits.high != high).any():
        return None
    return HeldScale(_digest(held.of), low, high, held.signed)


def held_again(
    chosen: HeldScale | None, of: tuple[object, ...], scale: str, channels: int
) -> ScaleLock | None:
    """Return the scale that a view holds; None where it holds none, or that of something else.

    Args:
        chosen: what the view says.
        of: what is drawn, by `hookviz.drawing.grid.scale_of`.
        scale: one of `SCALES`, which the held one is of.
        channels: how many it has.
    """
    if chosen is None or chosen.of != _digest(of):
        return None
    low, high = np.full(channels, chosen.low), np.full(channels, chosen.high)
    return ScaleLock(of, Limits(scale, low, high), chosen.is_signed)


def _digest(of: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(of).encode(), digest_size=4).hexdigest()


class Compared(NamedTuple):
    """What is pinned beside what is looked at, and both as drawn.

    Attributes:
        maps: of both.
        pair: both as drawn.
        shown: what of them: ``"A"``, ``"B"``, ``"Split"`` or ``"Difference"``.
    """

    maps: PinnedPair
    pair: Pair
    shown: str


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """What a view shows of a subject.

    Attributes:
        looked: the layer.
        capture: the pass that recorded it.
        activation: what it put out, as recorded.
        maps: the maps shown, ``(C, H, W)``.
        look: how they are drawn.
        own: the layer's channels as drawn by themselves.
        compared: they as B beside what is pinned as A; None where nothing is, or A can't be had.
        warning: why A can't be had; empty where it can.
        began: when the pass was over and drawing began, of `time.perf_counter`.
    """

    looked: Looked
    capture: Capture
    activation: Activation
    maps: torch.Tensor
    look: Look
    own: Grid
    compared: Compared | None
    warning: str
    began: float

    @property
    def is_of_a(self) -> bool:
        """Whether A alone is shown, as a pair of two shapes shows it."""
        return (
            self.compared is not None
            and not self.compared.pair.alike
            and self.compared.shown == "A"
        )

    @property
    def grid(self) -> Grid:
        """Grid in whose colours one channel is shown: B's where there is a pair, else its own."""
        return self.own if self.compared is None else self.compared.pair.b


def drawn(subject: Subject, view: View) -> Drawn:
    """Draw what a view shows, or take it from the cache.

    Raises:
        HookVizError: the network shows no channels, or the pass can't be run.
    """
    looked = resolve(subject, view)
    capture = captured(subject, looked)
    began = time.perf_counter()
    activation = capture[str(looked.step)]
    maps = middle_maps(activation.values, looked.frame)
    look = look_of(view, subject.colours, maps.shape[0])
    own = draw_grid(subject, activation, look, view.held, looked.frame)
    compared, warning = None, ""
    try:
        both = pinned_pair(subject, str(looked.step), maps, looked.frame)
    except HookVizError as error:
        both, warning = None, str(error)
    if both is not None:
        compared = Compared(both, both.draw(look, own.title), both.shown(view))
    return Drawn(looked, capture, activation, maps, look, own, compared, warning, began)


def draw_grid(
    subject: Subject,
    activation: Activation,
    look: Look,
    chosen: HeldScale | None,
    frame: int | None = None,
) -> Grid:
    """Draw an activation, or take it from the cache.

    An order that it lacks by itself, such as by change, is the layer's own. `chosen` is a scale to
    draw on, where it is of the same layer, `frame` which slice of a volume is drawn.
    """
    depth = middle_slice(tuple(activation.values.shape), frame)
    look = look if look.sort in SORTS else replace(look, sort="index")
    of = scale_of(subject.model, activation, look.scale)
    held = held_again(chosen, of, look.scale, middle_maps(activation.values).shape[0])
    grid: Grid = subject.cached(
        "grid",
        str(activation.address),
        look,
        depth,
        None if held is None else chosen,
        current(),  # in which its words are said
        compute=lambda: look.draw(activation, held, depth),
        size=lambda drawn: drawn.levels.nbytes + len(drawn.sprite),
    )
    return grid
