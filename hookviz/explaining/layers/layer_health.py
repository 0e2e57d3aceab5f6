"""Check the numbers inside a network: NaN, infinities, dead and saturated units, and sizes.

Everything is of one pass over one image, so "dead" means dead on this image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.drawing.charts import Chart, titled_figure
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.layer_warnings import numbers
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPLODING = 1e4
"""Times the largest |x| of the network's input (1 at least)."""
WITHOUT_UNITS = {"Flatten", "Permute", "Identity", "Dropout", "Dropout2d", "StochasticDepth"}
"""Kinds of layers that put out what they are given."""


@dataclass(frozen=True, slots=True)
class OutputHealth:
    """Health of one tensor that one call of a layer put out.

    A unit is a channel, or one number of a vector. It is dead on this image where it is 0
    everywhere, or has the same value everywhere in a map of at least 9 cells: a pooling window
    covers all of a smaller one, which is then the same everywhere and yet says something.

    A sigmoid, tanh or their hard forms are saturated where the output is within 1 % of its range
    from either end: below 0.01 or above 0.99 for a sigmoid, beyond ±0.98 for a tanh. There the
    slope is at most a twenty-fifth of the steepest (Glorot & Bengio, 2010).

    Attributes:
        address: layer, call and part of the output.
        kind: the module's class.
        count: how many numbers there are.
        nan, inf: how many of them are NaN, and how many infinite.
        largest: max |x| of the finite ones.
        growth: that over the same of what the layer took in; NaN where that was 0 or nothing.
        units: how many units there are; 0 for a layer that has none, and where channels can't be
            told from rows or places.
        dead: how many of them are dead.
        saturated: the share of numbers that are, 0…1; NaN for a layer without a bounded range.
        input_bad: whether the layer took in NaN or infinities.
        bad_parameters: names of the module's own parameters and buffers that hold some.
    """

    address: ActivationKey
    kind: str
    count: int
    nan: int
    inf: int
    largest: float
    growth: float
    units: int
    dead: int
    saturated: float
    input_bad: bool
    bad_parameters: tuple[str, ...]

    @property
    def bad(self) -> bool:
        """Whether it holds NaN or infinities."""
        return bool(self.nan or self.inf)


@dataclass(frozen=True, eq=False, slots=True)
class NetworkHealth:
    """Health of every layer's output in one pass.

    Attributes:
        outputs: in order of execution.
        values: all numbers, flat, float32 on the CPU, of the first output of the layer that was
            asked for, and of the first one that is bad; by layer.
        limit: above this |x| activations explode: `EXPLODING` times max |x| of the network's
            input, or of 1 if that is larger. Half precision ends at 65,504.
    """

    outputs: tuple[OutputHealth, ...]
    values: Mapping[str, NDArray[np.float32]] = field(repr=False)
    limit: float

    @property
    def first_bad(self) -> OutputHealth | None:
        """The first output that holds NaN or infinities."""
        return next((output for output in self.outputs if output.bad), None)

    @property
    def chart(self) -> Chart:
        """Largest |x| of each output, in order of execution, beside `limit`."""
        labels = tuple(output.address.in_words for output in self.outputs)
        sizes = {
            say("max |x|"): np.array([output.largest for output in self.outputs]),
            say("explodes above"): np.full(len(labels), self.limit),
        }
        title, unit = say("Largest activation"), say("max |x|")
        return Chart(title, labels, sizes, kind="lines", unit=unit, log=True)

    def figure(self) -> "Figure":
        """Draw the largest |x| of each output, in order of execution, beside `limit`."""
        return titled_figure(self.chart)


def network_health(
    model: Model, model_input: ModelInput, layer: str, progress: Progress = ignore
) -> NetworkHealth:
    """Check every tensor that the layers of a network put out in one pass.

    Args:
        model: the model.
        model_input: what the network is given.
        layer: the layer whose numbers are kept.
        progress: called with the share done after every call; what it raises ends the run.

    Raises:
        ModelError: the network can't take this input.
    """
    trace = input_trace(model, model_input)
    with private_replica(model) as replica:
        recorder = _HealthRecorder(replica, trace, layer, progress)
        with (
            hooks.before(replica, recorder.calls, recorder.before),
            hooks.observe(replica, recorder.calls, recorder.after),
        ):
            forward_pass(model, replica, model_input.tensor, recorder.reporter)
    limit = EXPLODING * max(1.0, largest_of(model_input.tensor))
    return NetworkHealth(tuple(recorder.outputs), recorder.values, limit)


class _HealthRecorder:
    """Checks every layer's output as it runs, before an in-place layer writes over it."""

    def __init__(
        self, replica: nn.Module, trace: LayerTrace, layer: str, progress: Progress
    ) -> None:
        self.outputs: list[OutputHealth] = []
        self.values: dict[str, NDArray[np.float32]] = {}
        self.calls = {info.name: info.calls for info in trace.layers}
        self.reporter = ProgressReporter(progress, sum(self.calls.values()))
        self._layer = layer
        self._modules = dict(replica.named_modules())
        self._inputs: dict[str, tuple[bool, float]] = {}
        self._axes = ChannelAxes()

    def before(self, call: hooks.Call) -> None:
        """Check what a call is about to take in."""
        inputs = [_numbers(tensor) for _, tensor in hooks.tensors_in(call.inputs)]
        tensors = [tensor for tensor in inputs if tensor is not None]
        bad = not all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
        self._inputs[call.layer] = bad, max(map(largest_of, tensors), default=np.nan)

    def after(self, call: hooks.Call) -> None:
        """Check what a call has put out."""
        module = self._modules[call.layer]
        input_bad, input_largest = self._inputs.pop(call.layer, (False, np.nan))
        for path, tensor in hooks.tensors_in(call.output):
            values = _numbers(tensor)
            if values is None or not values.numel():
                continue
            axis = None if tensor.is_nested else self._axes.axis(module, call, path, tensor)
            units, dead = 0, 0
            if axis is not None and type(module).__name__ not in WITHOUT_UNITS:
                units, dead = count_units(values, axis)
            largest = largest_of(values)
            output = OutputHealth(
                address=ActivationKey(call.layer, call.index, path),
                kind=type(module).__name__,
                count=values.numel(),
                nan=int(torch.isnan(values).sum()),
                inf=int(torch.isinf(values).sum()),
                largest=largest,
                growth=largest / input_largest if input_largest else np.nan,
                units=units,
                dead=dead,
                saturated=share_saturated(module, values),
                input_bad=input_bad,
                bad_parameters=_bad_parameters(module),
            )
            first_bad = output.bad and not any(other.bad for other in self.outputs)
            if (first_bad or call.layer == self._layer) and call.layer not in self.values:
                copy = values.flatten().to("cpu", torch.float32, copy=True)
                self.values[call.layer] = copy.numpy()
            self.outputs.append(output)
        self.reporter.step()


def _numbers(tensor: Tensor) -> Tensor | None:
    """Return a tensor's values; None for whole numbers, and for a tensor that can't be read."""
    try:
        return numbers(tensor) if tensor.is_floating_point() else None
    except ValueError:
        return None


def count_units(values: Tensor, axis: int) -> tuple[int, int]:
    """Return how many units there are along an axis, and how many of them are dead."""
    by_unit = values.movedim(axis, 0).reshape(values.shape[axis], -1)
    dead = (by_unit == 0).all(1)
    if by_unit.shape[1] >= 9:  # a pooling window may cover all of fewer cells
        dead |= by_unit.amax(1) == by_unit.amin(1)
    return len(by_unit), int(dead.sum())


def largest_of(tensor: Tensor) -> float:
    """Return max |x| of the finite values; 0 without any."""
    size = tensor.abs().nan_to_num(0.0, posinf=0.0)
    return float(size.max()) if size.numel() else 0.0


def share_saturated(module: nn.Module, values: Tensor) -> float:
    """Return the share of values within 1 % of an end of a bounded activation's range, or NaN."""
    if isinstance(module, nn.Sigmoid | nn.Hardsigmoid):
        low, high = 0.0, 1.0
    elif isinstance(module, nn.Tanh | nn.Softsign):
        low, high = -1.0, 1.0
    elif isinstance(module, nn.Hardtanh) and not isinstance(module, nn.ReLU6):
        low, high = float(module.min_val), float(module.max_val)
    else:
        return np.nan
    end = 0.01 * (high - low)
    return float(((values < low + end) | (values > high - end)).float().mean())


def _bad_parameters(module: nn.Module) -> tuple[str, ...]:
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return tuple(
        name
        for name, tensor in own
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())
    )
