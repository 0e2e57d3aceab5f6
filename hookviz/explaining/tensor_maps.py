"""Read any tensor of a network as maps, (C, H, W), and say how its shape was read."""

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.language.saying import say
from hookviz.types import LAST, TOKENS, Layout

Maps = NDArray[np.float32]


def tensor_maps(values: Maps, layout: Layout) -> tuple[Maps | None, str]:
    """Return a tensor as ``(C, H, W)``, and how its shape was read; None where it is empty.

    Args:
        values: of any shape, the batch included.
        layout: how it lies. What has no known rows and columns is drawn as the numbers it is.
    """
    if not values.size:
        return None, "empty"
    notes = []
    if not layout.batch:
        values = values[None]
    if values.ndim > 3 or (layout.last and values.ndim > 1):
        if len(values) > 1:
            notes.append(f"the first of {len(values)} in the batch")
        values = values[0]
    elif values.ndim > 1 and len(values) == 1:
        values = values[0]
    layout = layout.of(values.shape)
    if layout.order in {LAST, TOKENS}:
        notes.append(
            "channels last: rows × columns × channels"
            if layout.order == LAST
            else say("tokens, one per cell, without the first {count}", count=layout.prefix_tokens)
        )
        return layout.maps(torch.from_numpy(values)).contiguous().numpy(), "; ".join(notes)
    if values.ndim <= 1:
        return values.reshape(-1, 1, 1), say("a vector, one cell per number") if values.ndim else ""
    if values.ndim == 2:
        return values[None], say("a row per place, a column per feature")
    if values.ndim > 3:
        notes.append("leading dimensions laid out one after the other")
        return values.reshape(-1, *values.shape[-2:]), "; ".join(notes)
    return values, "; ".join(notes)
