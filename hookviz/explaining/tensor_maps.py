"""Any tensor of a network read as channels, (C, H, W), with how its shape was read."""

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
    """A tensor as ``(C, H, W)``, and how its shape was read; None where it is empty.

    Args:
        values: of any shape, the batch included.
        module: the layer that takes it in or puts it out.
        ratio: height / width of the network's input. Of two orders of the dimensions, the one
            whose maps come closer to it is taken to be the network's.
        layout: how it lies, where the pass has told.
    """
    if not values.size:
        return None, "empty"
    says = []
    if layout is not None and not layout.batch:
        values = values[None]
    if values.ndim > 3:
        if len(values) > 1:
            says.append(f"the first of {len(values)} in the batch")
        values = values[0]
    elif values.ndim > 1 and len(values) == 1:
        values = values[0]
    if values.ndim <= 1:
        return values.reshape(-1, 1, 1), say("a vector, one cell per number") if values.ndim else ""
    if values.ndim == 2:
        return values[None], say("a row per place, a column per feature")
    if values.ndim > 3:
        says.append("leading dimensions laid out one after the other")
        return values.reshape(-1, *values.shape[-2:]), "; ".join(says)
    if channels_last(values.shape, module, ratio) if layout is None else layout.last:
        says.append("channels last: rows × columns × channels")
        values = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    return values, "; ".join(says)
