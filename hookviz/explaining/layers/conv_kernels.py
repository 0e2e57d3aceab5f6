"""Read a conv layer's kernels as it uses them, and find near-duplicates among them.

Kernels are compared by the cosine of the angle between them, ``⟨a, b⟩ / (‖a‖ · ‖b‖)``: 1 for the
same kernel at any strength, −1 for its opposite. First layers of trained networks hold many
opposite pairs (Shang et al., "Understanding and Improving Convolutional Neural Networks via
Concatenated Rectified Linear Units", ICML 2016, section 2.1).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.grid import Grid, make_grid
from hookviz.errors import SettingError
from hookviz.hooking import hooks
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import private_replica
from hookviz.hooking.torch_functions import EveryFunction
from hookviz.language.saying import say, say_count
from hookviz.types import LayerInfo, Model, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONVOLUTIONS = frozenset(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))

Floats = NDArray[np.float64]
Kernels = NDArray[np.float32]
"""``(output channels, inputs per kernel, taps down, taps across)``."""


@dataclass(frozen=True, eq=False, slots=True)
class ConvKernels:
    """Weights of a conv layer as it uses them, their norms, and near-duplicates among them.

    Attributes:
        layer: the layer's name.
        kernels: float32 ``(output channels, inputs per kernel, taps down, taps across)``.
        norms: ‖w‖₂ of each kernel, float64 ``(output channels,)``.
        pairs: kernels that point nearly the same way or opposite, the closest first, ``(P, 2)``;
            where none reaches the threshold, the closest pair alone.
        cosines: of each pair, float64 ``(P,)``.
        duplicate_count: how many pairs reach the threshold; `pairs` has 30 of them at most.
    """

    layer: str
    kernels: Kernels = field(repr=False)
    norms: Floats = field(repr=False)
    pairs: NDArray[np.int64] = field(repr=False)
    cosines: Floats = field(repr=False)
    duplicate_count: int

    @property
    def is_matrix(self) -> bool:
        """Whether the kernels have one tap and several inputs, and so are drawn as a matrix."""
        return self.kernels.shape[2:] == (1, 1) and self.kernels.shape[1] > 1

    def tiles(self, input_channel: int | None = 0) -> Kernels:
        """Return a map per output channel, ``(output channels, taps down, taps across)``.

        Kernels of one tap give one map, ``(1, outputs, inputs)``, its longer side across.

        Args:
            input_channel: whose weights they are, counted within the kernel; None for the norms
                over all inputs at each tap.

        Raises:
            SettingError: no kernel has that many input channels.
        """
        outputs, inputs = self.kernels.shape[:2]
        if input_channel is not None and not 0 <= input_channel < inputs:
            raise SettingError(
                say_count(
                    "channel={channel}: a kernel of {layer} has {input_count} input channel, 0 to "
                    "{last}.",
                    "channel={channel}: a kernel of {layer} has {input_count} input channels, 0 to "
                    "{last}.",
                    inputs,
                    channel=input_channel,
                    layer=self.layer,
                    input_count=inputs,
                    last=inputs - 1,
                )
            )
        if self.is_matrix:
            matrix = self.kernels.reshape(1, outputs, inputs)
            return np.ascontiguousarray(matrix.swapaxes(1, 2)) if outputs > inputs else matrix
        if input_channel is None:
            norms: Kernels = np.linalg.norm(self.kernels.astype(float), axis=1).astype(np.float32)
            return norms
        return np.ascontiguousarray(self.kernels[:, input_channel])

    def grid(self, input_channel: int | None = 0) -> Grid:
        """Draw the `tiles`; weights about zero, norms from the lowest to the highest.

        Raises:
            SettingError: no kernel has that many input channels.
        """
        tiles = self.tiles(input_channel)
        scale = "symmetric" if self.is_matrix or input_channel is not None else "layer"
        return make_grid(tiles, scale=scale, title=self._title(input_channel))

    def figure(self, input_channel: int | None = 0) -> "Figure":
        """Draw the `grid` as a page for print.

        Raises:
            SettingError: no kernel has that many input channels.
        """
        return self.grid(input_channel).figure()

    def _title(self, input_channel: int | None) -> str:
        outputs, inputs = self.kernels.shape[:2]
        if self.is_matrix:
            row, column = ("input", "output") if outputs > inputs else ("output", "input")
            return say(
                "Weights as a matrix: a row per {row} channel, a column per {column} channel",
                row=row,
                column=column,
            )
        if input_channel is None:
            return say("Norm over the input channels at each tap, a tile per output channel")
        where = (
            say("for input channel {channel}", channel=input_channel)
            if inputs > 1
            else say("for its one input channel")
        )
        return say("Kernels {inputs}, a tile per output channel", inputs=where)


def compare_kernels(
    model: Model, info: LayerInfo, threshold: float, progress: Progress = ignore
) -> ConvKernels:
    """Return a conv layer's kernels, their norms, and the pairs whose |cosine| is the largest."""
    kernels = conv_kernels(model, info)
    flat = kernels.reshape(len(kernels), -1).astype(np.float64)
    norms = np.linalg.norm(flat, axis=1)
    return ConvKernels(
        info.name, kernels, norms, *near_duplicates(flat, norms, threshold, progress)
    )


def conv_kernels(model: Model, info: LayerInfo) -> Kernels:
    """Return a conv layer's weights as used, after weight norm and the like."""
    with private_replica(model) as replica:
        module = replica.get_submodule(info.name)
        assert isinstance(module.weight, Tensor)
        catcher = _WeightCatcher()
        device, dtype = device_and_dtype(replica)
        try:
            with catcher:  # some layers make their weights anew in every call: ask for one call
                module(torch.zeros(1, *info.input_shape, device=device, dtype=dtype))
        except (hooks.StopForward, Exception):  # noqa: BLE001, S110 - then the stored weight
            pass
        used = module.weight if catcher.weight is None else catcher.weight
        weight = used.detach().to("cpu", torch.float32, copy=True)
    return np.ascontiguousarray(outputs_first(weight, info.groups, bool(module.transposed)))


class _WeightCatcher(EveryFunction):
    """Torch function mode that ends a layer's call at its convolution and keeps the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight: Tensor | None = None

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if getattr(func, "__name__", "") in _CONVOLUTIONS:
            self.weight = kwargs["weight"] if "weight" in kwargs else args[1]
            raise hooks.StopForward
        return func(*args, **kwargs)


def outputs_first(weight: Tensor, groups: int, transposed: bool) -> Kernels:
    """Return weights as ``(output channels, inputs per kernel, taps down, taps across)``."""
    if transposed:  # stored input channel first: within each group, outputs first
        grouped = weight.reshape(groups, -1, *weight.shape[1:])
        weight = grouped.transpose(1, 2).flatten(0, 1)
    return weight.reshape(*weight.shape[:2], -1, weight.shape[-1]).numpy()


def near_duplicates(
    flat: Floats, norms: Floats, threshold: float, progress: Progress | None = None
) -> tuple[NDArray[np.int64], Floats, int]:
    """Return the pairs of rows that point nearly the same way or opposite, the closest first.

    The cosine of the angle between two kernels is 1 for the same one at another strength and -1
    for the opposite. Where no pair's |cosine| reaches the threshold it is the closest pair alone.

    Returns:
        up to 30 pairs, ``(P, 2)``; their cosines, ``(P,)``; how many reach the threshold in all.
    """
    live = np.flatnonzero(norms > 0) if flat.shape[1] > 1 else np.empty(0, int)
    units = flat[live] / norms[live, None]
    pairs, closest, count = np.empty((0, 2), int), np.empty(0), 0
    for start in range(0, len(live), 512):  # that many kernels at a time against all others
        if progress:
            progress(start / len(live))
        cosines = np.clip(units[start : start + 512] @ units.T, -1, 1)
        sizes = np.abs(cosines)
        sizes[np.tril_indices(len(sizes), start, len(live))] = -1  # each pair once
        count += int((sizes >= threshold).sum())
        best = np.argsort(-sizes, axis=None, kind="stable")[:30]
        rows, columns = np.unravel_index(best[sizes.flat[best] >= 0], sizes.shape)
        pairs = np.concatenate([pairs, live[np.stack([rows + start, columns], 1)]])
        closest = np.concatenate([closest, cosines[rows, columns]])
    order = np.argsort(-np.abs(closest), kind="stable")[: max(1, min(30, count))]
    return pairs[order], closest[order], count
