"""Copy every input and output tensor of one layer call, and read any of them as maps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import HookVizError, SettingError, UnknownLayerError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.torch_functions import version
from hookviz.language.saying import say, say_count
from hookviz.types import LAST, TOKENS, Layout, Model, ModelInput, Progress, ignore

Maps = NDArray[np.float32]


def tensor_maps(values: Maps, layout: Layout) -> tuple[Maps | None, str]:
    """Return a tensor as ``(C, H, W)``, and how its shape was read; None where it is empty.

    The batch is included in `values`. A tensor without known rows and columns is drawn as the
    numbers lie.
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


Copies = tuple[tuple[tuple[str, ...], Tensor], ...]
"""Tensors on the CPU with their paths inside the arguments or the output: ``("0", "mask")``."""


@dataclass(frozen=True, eq=False, slots=True)
class LayerIO:
    """Inputs and outputs of one layer call.

    Attributes:
        inputs: as they were before the call; paths start with the argument's number.
        outputs: after the call.
        others: the kinds of the arguments that hold no tensor.
        in_place: whether the layer wrote into its input.
    """

    inputs: Copies = field(repr=False)
    outputs: Copies = field(repr=False)
    others: tuple[str, ...]
    in_place: bool


def layer_io(
    model: Model,
    model_input: ModelInput,
    layer: str,
    call: int = 0,
    progress: Progress = ignore,
    *,
    change: Callable[[Tensor], Tensor] | None = None,
) -> LayerIO:
    """Record the inputs and outputs of one layer call, in a pass that ends with it.

    `progress` is called with the share done after every layer. `change` maps the first input of the
    layer to the one that the layer gets in its place, as a pre-hook does.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        SettingError: the layer lacks that call.
        ModelError: the network can't take this input.
        HookVizError: this pass did not make that call.
    """
    calls = {info.name: info.calls for info in input_trace(model, model_input).every}
    if layer not in calls:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, calls)
    if not 0 <= call < calls[layer]:
        raise SettingError(
            say_count(
                "{layer} has no call {call}: it runs {calls} time in a pass.",
                "{layer} has no call {call}: it runs {calls} times in a pass.",
                calls[layer],
                call=call + 1,
                layer=layer,
                calls=calls[layer],
            )
        )
    recorder = _IORecorder(layer, call, ProgressReporter(progress, sum(calls.values())), change)
    with (
        private_replica(model) as replica,
        hooks.before(replica, [layer], recorder.before),
        hooks.observe(replica, calls, recorder.after),
    ):
        forward_pass(model, replica, model_input.tensor, recorder.reporter)
    if recorder.tensors is None:
        raise HookVizError(
            say(
                "This pass did not run call {call} of {layer}. Its call 1 comes first.",
                call=call + 1,
                layer=layer,
            )
        )
    return recorder.tensors


class _IORecorder:
    """Copies the wanted call's inputs and outputs, and ends the pass after it."""

    def __init__(
        self,
        layer: str,
        call: int,
        reporter: ProgressReporter,
        change: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self._change = change
        self.tensors: LayerIO | None = None
        self.reporter = reporter
        self._wanted = (layer, call)
        self._inputs: Copies = ()
        self._versions: list[int] = []

    def before(self, call: hooks.Call) -> Any:
        if (call.layer, call.index) != self._wanted:
            return None
        inputs = call.inputs
        if self._change is not None:
            inputs = (self._change(inputs[0]), *inputs[1:])
        self._inputs, self._versions = _copies(inputs), _versions(inputs)
        return None if self._change is None else inputs

    def after(self, call: hooks.Call) -> None:
        self.reporter.step()
        if (call.layer, call.index) == self._wanted:
            self.tensors = LayerIO(
                inputs=self._inputs,
                outputs=_copies(call.output),
                others=tuple(
                    type(argument).__name__ for argument in call.inputs if not _versions(argument)
                ),
                in_place=_versions(call.inputs) != self._versions,
            )
            raise hooks.StopForward


def _copies(value: Any) -> Copies:
    return tuple(
        (path, tensor.detach().to("cpu", copy=True))
        for path, tensor in hooks.plain_tensors_in(value)
        if not tensor.is_meta  # which has no numbers
    )


def _versions(value: Any) -> list[int]:
    return [version(tensor) for _, tensor in hooks.tensors_in(value)]
