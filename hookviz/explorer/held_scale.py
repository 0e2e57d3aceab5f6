"""Write a stream's held scale into a view, and draw on it again where the same thing is shown."""

import hashlib

import numpy as np

from hookviz.drawing.held_scale import Held
from hookviz.drawing.scales import Limits
from hookviz.explorer.view import HeldScale


def held_in_view(held: Held | None) -> HeldScale | None:
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
) -> Held | None:
    """Return the scale that a view holds; None where it holds none, or that of something else.

    Args:
        chosen: what the view says.
        of: what is drawn, by `hookviz.drawing.held_scale.scale_of`.
        scale: one of `SCALES`, which the held one is of.
        channels: how many it has.
    """
    if chosen is None or chosen.of != _digest(of):
        return None
    low, high = np.full(channels, chosen.low), np.full(channels, chosen.high)
    return Held(of, Limits(scale, low, high), chosen.is_signed)


def _digest(of: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(of).encode(), digest_size=4).hexdigest()
