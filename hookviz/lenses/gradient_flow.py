"""How strong the gradient is that reaches each layer in one training step, and what clipping does.

Vanishing and exploding gradients as in Glorot & Bengio, "Understanding the difficulty of training
deep feedforward neural networks" (2010); clipping as in Pascanu et al., "On the difficulty of
training recurrent neural networks" (2013) and `torch.nn.utils`. No weight is changed.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.errors import ModelError
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import Telling, backward_pass, forward_pass
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import ClassChoice, OneOf, RealNumber
from hookviz.wording import number

Floats = NDArray[np.float64]
VANISHING, EXPLODING = 1e-4, 1e4  # times the strength at the layer nearest to the loss
LOST = 1e-8  # of the weights: a step with learning rate 1 is lost in the rounding of float32

_HEAD = ("layer", "weights", "‖g‖", "max |g|", "zeros (%)", "‖g‖ / ‖w‖", "verdict")


def run(subject: Subject, *, target: int, clipping: str, limit: float) -> LensOutput:
    """The gradients of the weights of every conv and linear layer, in order of execution.

    The loss is the cross entropy L = −log softmax(scores)[target] of this one image. Batch norm
    uses its stored averages and nothing is dropped, as in eval mode: one image has no statistics
    of a batch.

    The strength of a layer is ‖∂L/∂w‖₂ / ‖w‖₂, the share by which a step with learning rate 1
    would move its weights. It is compared with the layer nearest to the loss that has a gradient:
    below 10⁻⁴ times that the gradient vanishes, above 10⁴ times that it explodes. A strength below
    10⁻⁸ has vanished whatever the others are, as float32 keeps 7 digits of a weight; so has a
    gradient of 0, and one with NaN or infinities has exploded.

    Clipping is over all parameters, biases and norms included: by value each g becomes
    min(max(g, −limit), limit); by norm every g is multiplied by min(1, limit / (‖all g‖₂ + 10⁻⁶)).

    Values, one per layer: ``norm``, ``largest`` (max |g|), ``zeros`` (the share of exact 0),
    ``strength``; with clipping ``norm_clipped`` and ``largest_clipped``; ``loss`` and
    ``total_norm``.

    Raises:
        ModelError: no layer has weights of its own, or the network can't be differentiated.
    """
    taken = _step(subject, target)
    values = {
        "norm": np.array([_norm(each) for each in taken.weights.values()]),
        "largest": np.array([_largest(each) for each in taken.weights.values()]),
        "zeros": np.array([float((each == 0).float().mean()) for each in taken.weights.values()]),
        "strength": np.zeros(0),
        "loss": np.array(taken.loss),
        "total_norm": np.array(float(np.linalg.norm([_norm(each) for each in taken.every]))),
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        values["strength"] = values["norm"] / taken.sizes
    if clipping != "none":
        clipped = [
            _clip(each, clipping, limit, float(values["total_norm"]))
            for each in taken.weights.values()
        ]
        values["norm_clipped"] = np.array(list(map(_norm, clipped)))
        values["largest_clipped"] = np.array(list(map(_largest, clipped)))
    verdicts = _verdicts(values["norm"], values["strength"])
    first = _first(subject, target, taken, values, verdicts)
    panels: list[Panel] = [first, *_charts(taken, values), _table(taken, values, verdicts)]
    if clipping != "none":
        panels.insert(1, _clipping(taken, clipping, limit, float(values["total_norm"])))
    return tuple(panels), values


@dataclass(frozen=True, eq=False, slots=True)
class _Step:
    """The gradients of one step.

    Attributes:
        loss: of the chosen class.
        weights: each layer's gradient by its name, in order of execution.
        sizes: ‖w‖₂ of the same layers.
        every: the gradients of all parameters that the loss depends on.
    """

    loss: float
    weights: dict[str, Tensor]
    sizes: Floats
    every: list[Tensor]


def _step(subject: Subject, target: int) -> _Step:
    network = replicas.for_gradients(subject.model.network, trainable=True)
    modules = dict(network.named_modules())
    convs = {info.name for info in subject.convs}
    weights = {
        info.name: weight
        for info in subject.survey.layers
        if info.name in convs or isinstance(modules[info.name], nn.Linear)
        if (weight := modules[info.name]._parameters.get("weight")) is not None
    }
    if not weights:
        raise ModelError(
            f"{subject.model.title} has no conv or linear layer with weights of its own. "
            "Most models of the catalog have, for example shapesnet."
        )
    every = [each for each in network.parameters() if each.requires_grad]
    calls = {info.name: info.calls for info in subject.survey.layers}
    telling = Telling(subject.progress, sum(calls.values()) + len(weights))
    with torch.enable_grad(), hooks.observe(network, calls, lambda _call: telling.step()):
        scores = forward_pass(subject.model, network, subject.model_input.tensor, telling).float()
        loss = F.cross_entropy(scores, torch.tensor([target], device=scores.device))
    with hooks.on_gradients(lambda _name, _gradient: telling.step()) as seen:
        for name, weight in weights.items():
            seen.add(name, weight)
        found = backward_pass(subject.model, loss, every, telling)
    gradients = {
        id(parameter): gradient
        for parameter, gradient in zip(every, found, strict=True)
        if gradient is not None
    }
    used = {name: weight for name, weight in weights.items() if id(weight) in gradients}
    if not used:
        raise ModelError(
            f"The scores of {subject.model.title} depend on the weights of no conv or linear layer."
        )
    return _Step(
        float(loss.detach()),
        {name: gradients[id(weight)] for name, weight in used.items()},
        np.array([_norm(weight) for weight in used.values()]),
        list(gradients.values()),
    )


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.detach().cpu(), dtype=torch.float64))


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().max())


def _clip(gradient: Tensor, clipping: str, limit: float, total: float) -> Tensor:
    if clipping == "by value":
        return gradient.clamp(-limit, limit)
    return gradient * min(1.0, limit / (total + 1e-6))


def _verdicts(norms: Floats, strengths: Floats) -> list[str]:
    """``"vanishing"``, ``"exploding"`` or ``""`` for each layer."""
    usable = np.isfinite(strengths) & (norms > 0)
    nearest = strengths[np.flatnonzero(usable)[-1]] if usable.any() else np.nan
    found = []
    for norm, strength in zip(norms, strengths, strict=True):
        if norm == 0 or strength < max(LOST, VANISHING * nearest):
            found.append("vanishing")
        elif not np.isfinite(norm) or (np.isfinite(strength) and strength > EXPLODING * nearest):
            found.append("exploding")
        else:
            found.append("")
    return found


def _first(
    subject: Subject, target: int, taken: _Step, values: dict[str, Floats], verdicts: list[str]
) -> TextPanel:
    """What vanishes and explodes, in words."""
    said = [f"The loss for {subject.label(target)} is {number(taken.loss)}."]
    for verdict, verb in (("vanishing", "vanishes"), ("exploding", "explodes")):
        names = [
            name for name, found in zip(taken.weights, verdicts, strict=True) if found == verdict
        ]
        if names:
            more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
            said.append(
                f"The gradient {verb} in {len(names):,} of {len(verdicts):,} layers: "
                f"{', '.join(names[:4])}{more}."
            )
    if not any(verdicts):
        strength = values["strength"][np.isfinite(values["strength"])]
        said.append(
            "No gradient vanishes or explodes: ‖g‖ is between "
            f"{number(strength.min())} and {number(strength.max())} of ‖w‖ in every layer."
        )
    if taken.loss < 1e-2:
        said.append(
            "The network is sure of this class already, so every gradient is small; "
            "another class gives larger ones."
        )
    if any("BatchNorm" in info.kind for info in subject.survey.layers):
        said.append("Batch norm uses its stored averages.")
    return TextPanel(" ".join(said), "bad" if any(verdicts) else "good")


def _clipping(taken: _Step, clipping: str, limit: float, total: float) -> TextPanel:
    if clipping == "by norm":
        factor = min(1.0, limit / (total + 1e-6))
        does = f"multiplies every gradient by {number(factor)}" if factor < 1 else "changes nothing"
        return TextPanel(
            f"The norm of all gradients together is {number(total)}: clipping it to "
            f"{number(limit)} {does}."
        )
    cut = sum(int((each.abs() > limit).sum()) for each in taken.every)
    count = sum(each.numel() for each in taken.every)
    return TextPanel(f"Clipping by value to ±{number(limit)} changes {cut:,} of {count:,} numbers.")


def _charts(taken: _Step, values: dict[str, Floats]) -> tuple[ChartPanel, ChartPanel, ChartPanel]:
    labels = tuple(taken.weights)
    series = {"‖g‖": values["norm"], "max |g|": values["largest"]}
    if "norm_clipped" in values:
        series["‖g‖ clipped"] = values["norm_clipped"]
        series["max |g| clipped"] = values["largest_clipped"]
    sizes = ChartPanel(
        "Gradient of each layer's weights",
        labels,
        series,
        kind="lines",
        unit="size of the gradient",
        log=True,
        caption="From the input, left, to the loss, right. What is 0 has no point.",
    )
    usable = np.flatnonzero(np.isfinite(values["strength"]) & (values["norm"] > 0))
    nearest = float(values["strength"][usable[-1]]) if len(usable) else np.nan
    strength = ChartPanel(
        "Strength against the layer nearest to the loss",
        labels,
        {
            "‖g‖ / ‖w‖": values["strength"],
            "explodes above": np.full(len(labels), EXPLODING * nearest),
            "vanishes below": np.full(len(labels), max(LOST, VANISHING * nearest)),
        },
        kind="lines",
        unit="‖g‖ / ‖w‖",
        log=True,
        caption=f"The lines stand at {number(EXPLODING)} and 1/{number(1 / VANISHING)} times the "
        "strength of the last layer that has a gradient.",
    )
    zeros = ChartPanel(
        "Weights without any gradient",
        labels,
        {"zeros": 100 * values["zeros"]},
        unit="gradient exactly 0 (%)",
        caption="Units that are switched off pass no gradient on.",
    )
    return sizes, strength, zeros


def _table(taken: _Step, values: dict[str, Floats], verdicts: list[str]) -> TablePanel:
    rows = tuple(
        (
            name,
            gradient.numel(),
            number(float(values["norm"][place])),
            number(float(values["largest"][place])),
            number(100 * float(values["zeros"][place])),
            number(float(values["strength"][place])),
            verdicts[place] or "fine",
        )
        for place, (name, gradient) in enumerate(taken.weights.items())
    )
    return TablePanel("Layer by layer, in order of execution", _HEAD, rows)


LENS = Lens(
    slug="gradient-flow",
    title="Gradient flow",
    group="Training",
    sentence="How much gradient reaches each layer in a training step, and what clipping does.",
    run=run,
    parameters=(
        ClassChoice(),
        OneOf(name="clipping", label="Clip", choices=("none", "by value", "by norm")),
        RealNumber(name="limit", label="Limit", low=1e-9, high=1e9, default=0.1),
    ),
)
