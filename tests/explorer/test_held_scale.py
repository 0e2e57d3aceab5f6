"""What a view keeps of a stream's scale, and where that is drawn on again."""

import numpy as np

from hookviz.drawing.held_scale import Held
from hookviz.drawing.scales import Limits
from hookviz.explorer.held_scale import held_again, held_in_view

OF = ("network", "conv1", "layer")


def held(low: float, *others: float) -> Held:
    lows = np.array([low, *others])
    return Held(OF, Limits("layer", lows, lows + 3), True)


def test_what_a_view_keeps_is_drawn_on_again_for_the_same_thing_alone() -> None:
    kept = held_in_view(held(-1.5, -1.5))
    assert kept is not None
    again = held_again(kept, OF, "layer", 4)
    assert again is not None
    assert again.limits is not None
    assert (again.limits.low.tolist(), again.limits.high.tolist()) == ([-1.5] * 4, [1.5] * 4)
    assert again.signed
    assert held_again(kept, ("network", "conv2", "layer"), "layer", 4) is None
    assert held_again(None, OF, "layer", 4) is None


def test_a_scale_for_each_channel_is_not_kept() -> None:
    assert held_in_view(held(-1.5, -2.0)) is None
    assert held_in_view(None) is None
