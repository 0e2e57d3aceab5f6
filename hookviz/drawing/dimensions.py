"""Turn any activation into maps to draw: of sound, of a volume, of an image."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.language.saying import say
from hookviz.types import Activation
from hookviz.wording import times


def as_maps(
    values: NDArray[np.generic], depth: int | None, *, of: str = ""
) -> tuple[NDArray[Any], str]:
    """Return the maps to draw, ``(C, H, W)``, and a sentence on what they are, if not plain.

    Values of ``(C, L)`` become a strip for each channel, ``(C, 1, L)``; of ``(C, D, H, W)`` the
    slice at `depth` is drawn, counted from 0; any other shape stays unchanged. The error names the
    layer `of`.

    Raises:
        HookVizError: it is a layer that puts out no maps, such as a linear one, or those of several
            images or heads at once.
        SettingError: the volume lacks that slice, or `depth` is given for another shape.
    """
    if depth is not None:
        slices = values.shape[1] if values.ndim == 4 else 0
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth < slices:
            wanted = (
                say("a slice of this volume, 0 to {last}", last=slices - 1)
                if slices
                else say(
                    "of use here: it is for volumes, (C, D, H, W), and this is {shape}",
                    shape=values.shape,
                )
            )
            raise SettingError(
                say("depth={depth} is not {expected}.", depth=shorten(repr(depth)), expected=wanted)
            )
        return values[:, depth], say(
            "Slice {depth} of {count} in depth, counted from 0.", depth=depth, count=slices
        )
    if of and values.ndim < 2:
        raise HookVizError(
            say(
                "{layer} puts out {shape} numbers, no maps to draw. Layers and blocks that do "
                "are listed by list_layers(model, kind='maps') and `hookviz layers --kind "
                "maps`; extract_features and the lens Summary take any layer.",
                layer=of,
                shape=times(values.shape),
            )
        )
    if values.ndim > 4:
        raise HookVizError(
            say(
                "These {shape} numbers are of several images or heads at once, and no channels of "
                "one. Choose another layer; `Activation.raw` has all of them.",
                shape=times(values.shape),
            )
        )
    if values.ndim == 2:
        return values[:, None], say("Each strip is a channel, from left to right along its length.")
    return values, ""


def as_float32(activation: object) -> NDArray[np.float32]:
    """Return an activation's values, or a tensor's or an array's, as float32 on the CPU.

    Raises:
        HookVizError: it is something else, or its numbers are not real.
    """
    values = activation.values if isinstance(activation, Activation) else activation
    if isinstance(values, Tensor):
        if values.is_complex():
            raise HookVizError(
                say("A grid needs real numbers; this tensor holds {dtype}.", dtype=values.dtype)
            )
        tensor: NDArray[np.float32] = values.detach().cpu().float().numpy()
        return tensor
    if not isinstance(values, np.ndarray):
        kind = type(values).__name__
        if hasattr(values, "raw"):
            raise HookVizError(
                say("A grid is of one image; this is a {kind} of several: [0] is one.", kind=kind)
            )
        raise HookVizError(
            say("A grid needs an activation, a tensor or an array; this is a {kind}.", kind=kind)
        )
    if values.dtype.kind not in "fiub":
        raise HookVizError(
            say("A grid needs real numbers; this array holds {dtype}.", dtype=values.dtype)
        )
    with np.errstate(over="ignore"):  # a float64 beyond float32 is shown as infinite
        return values.astype(np.float32, copy=False)


def no_map_note(activation: Activation) -> str:
    """Say that nobody knows which axes are rows and columns; empty where that is known."""
    shape = activation.values.shape
    if activation.layout.order or not 2 <= len(shape) <= 3:
        return ""
    return say(
        "This is no map: of {shape} nobody knows which axes are channels, rows and columns. Each "
        "tile is one part along the first axis, as the numbers lie.",
        shape=times(shape),
    )


def check_channels_first(activation: Activation) -> None:
    """Refuse an activation with its channels last whose rows and columns are unknown.

    Raises:
        HookVizError: it is one: the tiles would not be channels.
    """
    shape = activation.values.shape
    if activation.channels_last and len(shape) > 1:
        raise HookVizError(
            say(
                "{layer} puts out {shape}: {channels:,} channels at {grid} places, of which nobody "
                "knows the rows and columns, so it is no map. The lens 'inputs' draws what any "
                "layer puts out.",
                layer=activation.address,
                shape=times(shape),
                channels=shape[-1],
                grid=times(shape[:-1]),
            )
        )


def slices(shape: tuple[int, ...]) -> int:
    """Return how many slices a volume has, ``(C, D, H, W)``, or frames; 0 of other shapes."""
    return shape[1] if len(shape) == 4 else 0


def middle_slice(shape: tuple[int, ...], depth: int | None = None) -> int | None:
    """Return `depth` where a volume has that slice, else its middle one; None for other shapes."""
    count = slices(shape)
    if not count:
        return None
    return depth if depth is not None and depth < count else count // 2


def middle_maps(values: torch.Tensor, depth: int | None = None) -> torch.Tensor:
    """Return the maps shown of an activation, ``(C, H, W)``; of a volume its `middle_slice`."""
    shown = middle_slice(tuple(values.shape), depth)
    return torch.from_numpy(as_maps(values.numpy(), shown)[0])
