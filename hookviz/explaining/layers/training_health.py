"""Check the health of a network: NaN, dead and saturated units, and gradients of its weights.

`network_health` looks at one pass over one image, so "dead" means dead on this image.
`weight_gradients` computes one training step without changing a weight. Vanishing and exploding
gradients are as in Glorot & Bengio, "Understanding the difficulty of training deep feedforward
neural networks" (2010); clipping as in Pascanu et al., "On the difficulty of training recurrent
neural networks" (2013) and `torch.nn.utils`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.drawing.charts import Chart, titled_figure
from hookviz.errors import ModelError
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    forward_pass,
    private_replica,
)
from hookviz.hooking.layer_warnings import numbers
from hookviz.language.saying import mark, say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ACTIVATION_LIMIT = 1e4
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
        growth: that over the same of the layer's input; NaN where that was 0 or nothing.
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
        limit: above this |x| activations explode: `ACTIVATION_LIMIT` times max |x| of the network's
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
    limit = ACTIVATION_LIMIT * max(1.0, largest_of(model_input.tensor))
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
        inputs = [_numbers(tensor) for _, tensor in hooks.tensors_in(call.inputs)]
        tensors = [tensor for tensor in inputs if tensor is not None]
        bad = not all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
        self._inputs[call.layer] = bad, max(map(largest_of, tensors), default=np.nan)

    def after(self, call: hooks.Call) -> None:
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


Floats = NDArray[np.float64]
VANISHING, EXPLODING = 1e-4, 1e4
"""Limits of a layer's strength, as multiples of that at the layer nearest to the loss."""
LOST = 1e-8
"""Strength below which a step with learning rate 1 is lost in the rounding of float32."""


@dataclass(frozen=True, eq=False)
class WeightGradients:
    """Gradients of one training step.

    Attributes:
        loss: of the chosen class, L = −log of its probability, or −score where it has none.
        by_layer: ∂L/∂w of each conv and linear layer by its name, of the shape of its weights, in
            order of execution.
        weight_norms: ‖w‖₂ of the same layers, ``(layers,)``.
        every: the gradients of all parameters that the loss depends on.
    """

    loss: float
    by_layer: dict[str, Tensor] = field(repr=False)
    weight_norms: Floats = field(repr=False)
    every: list[Tensor] = field(repr=False)

    @cached_property
    def norms(self) -> Floats:
        """‖∂L/∂w‖₂ of each layer, ``(layers,)``."""
        return np.array([norm(gradient) for gradient in self.by_layer.values()])

    @cached_property
    def total_norm(self) -> float:
        """‖all gradients together‖₂, as clipping by norm takes it."""
        return float(np.linalg.norm([norm(gradient) for gradient in self.every]))

    @cached_property
    def strengths(self) -> Floats:
        """‖∂L/∂w‖₂ / ‖w‖₂ of each layer, ``(layers,)``.

        The share by which a step with learning rate 1 would move the weights.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            strengths: Floats = self.norms / self.weight_norms
        return strengths

    def figure(self) -> "Figure":
        """Draw `norms` and `strengths` of each layer, from the input to the loss."""
        series = {"‖g‖": self.norms, "‖g‖ / ‖w‖": self.strengths}
        return titled_figure(
            Chart(
                say("Gradient of each layer's weights"),
                tuple(self.by_layer),
                series,
                kind="lines",
                unit=say("size of the gradient"),
                log=True,
            )
        )

    def clipped(self, clipping: str, limit: float) -> list[Tensor]:
        """Clip each layer's gradient, over all parameters, biases and norms included.

        ``"by value"``: each g becomes min(max(g, −limit), limit), of a complex one both parts.
        ``"by norm"``: every g is multiplied by `clip_factor`.
        """
        if clipping == "by value":
            return [clip(gradient, clipping, limit) for gradient in self.by_layer.values()]
        factor = clip_factor(self.total_norm, limit)
        return [gradient * factor for gradient in self.by_layer.values()]


class ClipAt:
    """Clips the gradient at a layer's output or input, on its way back to all layers before.

    Each tensor by itself, as `hookviz.clip_gradients(at=...)` does.

    Attributes:
        before, after: the norm of the gradient there, before and after clipping; 0 where there was
            none.
        needed: whether anything there needs a gradient. An image does not: a backward hook of the
            first layer has None in its ``grad_input``.
    """

    def __init__(self, layer: str, clipping: str, limit: float, *, side: str = "outputs") -> None:
        """Clip at the `side` of `layer`, as in `WeightGradients.clipped`."""
        self.before = self.after = 0.0
        self.needed = False
        self._side = side
        self._layer, self._clipping, self._limit = layer, clipping, limit

    @contextmanager
    def on(self, replica: nn.Module) -> Iterator[None]:
        """Clip for a block, in which both passes have to run."""
        with hooks.on_gradients(lambda _name, gradient: self._clip(gradient)) as gradients:

            def watch(call: hooks.Call) -> None:
                for _, tensor in hooks.tensors_in(
                    call.inputs if self._side == "inputs" else call.output
                ):
                    if tensor.requires_grad:
                        self.needed = True
                        gradients.add(call.layer, tensor)

            if self._side == "inputs":  # before the layer can write into them
                with hooks.before(replica, [self._layer], watch):
                    yield
            else:
                with hooks.observe(replica, [self._layer], watch):
                    yield

    def _clip(self, gradient: Tensor) -> Tensor:
        clipped = clip(gradient, self._clipping, self._limit)
        self.before = float(np.hypot(self.before, norm(gradient)))
        self.after = float(np.hypot(self.after, norm(clipped)))
        return clipped


def weight_gradients(
    model: Model,
    model_input: ModelInput,
    target: int,
    progress: Progress = ignore,
    clip_at: ClipAt | None = None,
) -> WeightGradients:
    """Compute the gradients of every parameter in one training step on one image.

    Batch norm uses its stored averages and nothing is dropped, as in eval mode: one image has no
    statistics of a batch.

    The loss is the cross entropy of the class `target`. `progress` is called with the share done
    after every layer, forward and backward.

    Raises:
        ModelError: no layer has weights of its own, the network puts out no class scores, or it
            can't be differentiated.
    """
    run = input_trace(model, model_input)
    convs = {info.name for info in run.convs}
    calls = {info.name: info.calls for info in run.layers}
    with differentiable(model, trainable=True) as network:
        modules = dict(network.named_modules())
        weights = {
            info.name: weight
            for info in run.layers
            if info.name in convs or isinstance(modules[info.name], nn.Linear)
            if (weight := modules[info.name]._parameters.get("weight")) is not None
        }
        if not weights:
            raise ModelError(
                say(
                    "{model} has no conv or linear layer with weights of its own. Most models of "
                    "the catalog have, for example shapesnet.",
                    model=model.title,
                )
            )
        parameters = [each for each in nn.Module.parameters(network) if each.requires_grad]
        reporter = ProgressReporter(progress, sum(calls.values()) + len(weights))
        with clip_at.on(network) if clip_at else nullcontext():
            with hooks.observe(network, calls, lambda _call: reporter.step()):
                found = class_scores(model, network, model_input.tensor, reporter)
                loss = found.reading.loss(found.values.float(), target)[0]
            with hooks.on_gradients(lambda _name, _gradient: reporter.step()) as watched:
                for name, weight in weights.items():
                    watched.add(name, weight)
                backward = backward_pass(model, loss, parameters, reporter)
    gradients = {
        id(parameter): gradient
        for parameter, gradient in zip(parameters, backward, strict=True)
        if gradient is not None
    }
    used = {name: weight for name, weight in weights.items() if id(weight) in gradients}
    if not used:
        raise ModelError(
            say(
                "The scores of {model} depend on the weights of no conv or linear layer.",
                model=model.title,
            )
        )
    return WeightGradients(
        float(loss.detach()),
        {name: gradients[id(weight)] for name, weight in used.items()},
        np.array([norm(weight) for weight in used.values()]),
        list(gradients.values()),
    )


def real_parts(tensor: Tensor) -> Tensor:
    """Return the real numbers of a tensor: of complex ones the real and the imaginary parts."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def norm(tensor: Tensor) -> float:
    """Return ‖x‖₂ = √Σ |x|², summed in float64."""
    return float(torch.linalg.vector_norm(real_parts(tensor.detach()).cpu(), dtype=torch.float64))


def largest(tensor: Tensor) -> float:
    """Return max |x|."""
    return float(tensor.detach().abs().max())


def clip_factor(total_norm: float, limit: float) -> float:
    """Return clipping by norm's factor for all gradients: min(1, limit / (‖all g‖₂ + 10⁻⁶))."""
    return min(1.0, limit / (total_norm + 1e-6))


def clip(gradient: Tensor, clipping: str, limit: float) -> Tensor:
    """Clip a gradient by itself, ``"by value"`` or ``"by norm"``."""
    if clipping == "by value":
        if gradient.is_complex():
            return torch.view_as_complex(real_parts(gradient).clamp(-limit, limit))
        return gradient.clamp(-limit, limit)
    return gradient * clip_factor(norm(gradient), limit)


def differs(one: Tensor, other: Tensor) -> bool:
    """Return whether two gradients differ by more than rounding: ‖a − b‖₂ > 10⁻⁵ ‖a‖₂."""
    return not norm(one - other) <= 1e-5 * norm(one)


def nearest_strength(norms: Floats, strengths: Floats) -> float:
    """Return the strength at the layer nearest to the loss that has a gradient; NaN where none has.

    Both arguments are ``(layers,)``, in order of execution.
    """
    usable = np.flatnonzero(np.isfinite(strengths) & (norms > 0))
    return float(strengths[usable[-1]]) if len(usable) else np.nan


def verdicts_of(norms: Floats, strengths: Floats) -> list[str]:
    """Judge each layer ``"vanishing"``, ``"exploding"`` or ``""``; arguments are ``(layers,)``.

    A strength below `VANISHING` times `nearest_strength` vanishes, and above `EXPLODING` times it
    explodes. Below `LOST` it has vanished whatever the others are, as float32 keeps 7 digits of a
    weight; so has a gradient of 0, and one with NaN or infinities has exploded.
    """
    nearest = nearest_strength(norms, strengths)
    verdicts = []
    for size, strength in zip(norms, strengths, strict=True):
        if size == 0 or strength < max(LOST, VANISHING * nearest):
            verdicts.append(mark("vanishing"))
        elif not np.isfinite(size) or (np.isfinite(strength) and strength > EXPLODING * nearest):
            verdicts.append(mark("exploding"))
        else:
            verdicts.append("")
    return verdicts
