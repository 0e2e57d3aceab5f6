"""Compute the gradient of each layer's weights in one training step, and clip it.

Vanishing and exploding gradients as in Glorot & Bengio, "Understanding the difficulty of training
deep feedforward neural networks" (2010); clipping as in Pascanu et al., "On the difficulty of
training recurrent neural networks" (2013) and `torch.nn.utils`. No weight is changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.charts import Chart, titled_figure
from hookviz.errors import ModelError
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass, differentiable
from hookviz.language.saying import mark, say
from hookviz.types import Model, ModelInput, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    Args:
        model: the model.
        model_input: the image.
        target: the class whose cross entropy is differentiated.
        progress: called with the share done after every layer, forward and backward.
        clip_at: clips the gradient at a layer's output.

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
