"""Read any tensor of a network as maps, (C, H, W), and say how its shape was read."""

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hookviz.capturing.layers import channels_last
from hookviz.capturing.layouts import Layout
from hookviz.language.saying import say

Maps = NDArray[np.float32]


def tensor_maps(
    values: Maps, module: nn.Module, ratio: float, layout: Layout | None = None
) -> tuple[Maps | None, str]:
    """Return a tensor as ``(C, H, W)``, and how its shape was read; None where it is empty.

    Args:
        values: of any shape, the batch included.
        module: the layer that takes it in or puts it out.
        ratio: height / width of the network's input. Of two orders of the dimensions, the one
            whose maps come closer to it is taken to be the network's.
        layout: the order of its dimensions, where the pass has shown it.
    """
    if not values.size:
        return None, "empty"
    notes = []
    if layout is not None and not layout.batch:
        values = values[None]
    if values.ndim > 3:
        if len(values) > 1:
            notes.append(f"the first of {len(values)} in the batch")
        values = values[0]
    elif values.ndim > 1 and len(values) == 1:
        values = values[0]
    if values.ndim <= 1:
        return values.reshape(-1, 1, 1), say("a vector, one cell per number") if values.ndim else ""
    if values.ndim == 2:
        return values[None], say("a row per place, a column per feature")
    if values.ndim > 3:
        notes.append("leading dimensions laid out one after the other")
        return values.reshape(-1, *values.shape[-2:]), "; ".join(notes)
    if channels_last(values.shape, module, ratio) if layout is None else layout.last:
        notes.append("channels last: rows × columns × channels")
        values = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    return values, "; ".join(notes)
