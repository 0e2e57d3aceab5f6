"""Trace a pass as it is followed, and time each call of a layer."""

import time
from collections.abc import Sequence

import torch

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.followed_pass import ExecutionTrace, follow_pass
from hookviz.explaining.provenance import LayerStep
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.precision import device_and_dtype
from hookviz.types import Model, ModelInput, Progress, ignore

_TIMED = 3  # passes; the first pass, which follows the tensors, warms up


def trace_execution(
    model: Model, model_input: ModelInput, progress: Progress = ignore
) -> ExecutionTrace:
    """Trace every call of a layer without parts, and of a block, in one pass; time three more.

    Args:
        model: the model.
        model_input: what the network is given.
        progress: called with the share done after every call; what it raises ends the run.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    calls = sum(layer.calls for layer in input_trace(model, model_input).layers)
    reporter = ProgressReporter(progress, (1 + _TIMED) * calls)
    traced = follow_pass(model, model_input, reporter)
    names = list(dict.fromkeys(step.address.layer for step in traced.steps))
    timer = _CallTimer(traced.steps, reporter, device_and_dtype(model.network)[0])
    for _ in range(_TIMED):
        timer.calls.clear()
        with (
            private_replica(model) as replica,
            hooks.before(replica, names, timer.before),
            hooks.observe(replica, names, timer.after),
        ):
            forward_pass(model, replica, model_input.tensor, reporter)
    return traced


class _CallTimer:
    """Measures how long each step's call takes, and adds it to the step.

    Attributes:
        calls: how many calls of each layer there have been in this pass.
    """

    def __init__(
        self, steps: Sequence[LayerStep], reporter: ProgressReporter, device: torch.device
    ) -> None:
        self._steps = {(step.address.layer, step.address.call): step for step in steps}
        self._reporter = reporter
        self._device = device
        self._started: list[float] = []
        self.calls: dict[str, int] = {}

    def before(self, _call: hooks.Call) -> None:
        """Start a call's time."""
        self._started.append(self._now())

    def after(self, call: hooks.Call) -> None:
        """Stop a call's time."""
        took = self._now() - self._started.pop()
        count = self.calls.get(call.layer, 0)
        self.calls[call.layer] = count + 1
        step = self._steps.get((call.layer, count))
        if step is not None:  # a network may run other layers each time
            step.seconds.append(took)
        self._reporter.step()

    def _now(self) -> float:
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)
        return time.perf_counter()
