"""Find every pooling that a pass runs: its kind, its windows, and one channel before and after.

They are found as the pass calls them, as modules and as functions of torch alike, on a private
replica. A plain mean over rows and columns, as some networks take at their end, is none.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.layers.layer_call import pair
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.torch_functions import EveryFunction, function_name, not_followed
from hookviz.types import Model, ModelInput

_MAPS = 4  # axes of a batch of maps


@dataclass(frozen=True, eq=False, slots=True)
class Pooling:
    """One pooling of a pass.

    Attributes:
        layer: the module that calls it; empty where that is no pooling module.
        kind: ``"max"`` or ``"average"``.
        window, stride, padding: rows and columns; None where windows follow the map's size.
        channels: how many channels are pooled.
        channel: the one with the highest value behind it.
        before: its map, ``(H, W)``.
        after: its map behind the pooling, ``(h, w)``.
    """

    layer: str
    kind: str
    window: tuple[int, int] | None
    stride: tuple[int, int] | None
    padding: tuple[int, int]
    channels: int
    channel: int
    before: NDArray[np.float32] = field(repr=False)
    after: NDArray[np.float32] = field(repr=False)

    def cells(self, row: int, column: int) -> tuple[slice, slice]:
        """Return the rows and the columns of the map before that one cell behind it is made of."""
        spans = zip((row, column), self.before.shape, self.after.shape, (0, 1), strict=True)
        return tuple(self._span(*span) for span in spans)  # type: ignore[return-value]

    def _span(self, at: int, size: int, count: int, axis: int) -> slice:
        if self.window is None or self.stride is None:  # as torch's adaptive poolings have it
            return slice(at * size // count, -(-(at + 1) * size // count))
        start = at * self.stride[axis] - self.padding[axis]
        return slice(max(0, start), min(size, start + self.window[axis]))


def poolings(model: Model, model_input: ModelInput) -> tuple[Pooling, ...]:
    """Return every pooling of maps that the network runs on an input, in order of execution.

    Raises:
        ModelError: the network can't take this input.
    """
    names = [each.name for each in input_trace(model, model_input).layers if "Pool" in each.kind]
    with private_replica(model) as replica, ExitStack() as block:
        recorder = _PoolingRecorder()
        block.enter_context(hooks.before(replica, names, recorder.begin))
        block.enter_context(hooks.observe(replica, names, recorder.end))
        with recorder:
            forward_pass(model, replica, model_input.tensor)
    return tuple(recorder.poolings)


class _PoolingRecorder(EveryFunction):
    """Keeps the poolings of a pass, and the module that is running."""

    def __init__(self) -> None:
        super().__init__()
        self.poolings: list[Pooling] = []
        self._layer = ""

    def begin(self, call: hooks.Call) -> None:
        self._layer = call.layer

    def end(self, _call: hooks.Call) -> None:
        self._layer = ""

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        output = func(*args, **kwargs)
        name = function_name(func).removesuffix("_with_indices")
        if not name.endswith(("max_pool2d", "avg_pool2d")):
            return output
        before = args[0] if args else kwargs["input"]
        after = output[0] if isinstance(output, tuple) else output
        if before.ndim == _MAPS and not before.is_meta:
            with not_followed():
                self.poolings.append(self._pooling(name, before, after, args[1:], kwargs))
        return output

    def _pooling(
        self,
        name: str,
        before: Tensor,
        after: Tensor,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Pooling:
        given = dict(zip(("kernel_size", "stride", "padding"), args, strict=False)) | dict(kwargs)
        window = stride = None
        padding = (0, 0)
        if not name.startswith("adaptive"):
            window = pair(given["kernel_size"])
            stride = pair(given.get("stride") or given["kernel_size"])
            padding = pair(given.get("padding", 0))
        channel = int(after[0].flatten(1).amax(1).argmax())
        return Pooling(
            layer=self._layer,
            kind="max" if "max" in name else "average",
            window=window,
            stride=stride,
            padding=padding,
            channels=after.shape[1],
            channel=channel,
            before=before[0, channel].float().cpu().numpy().copy(),
            after=after[0, channel].float().cpu().numpy().copy(),
        )
