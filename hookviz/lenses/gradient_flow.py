"""Measure the gradient that reaches each layer in one training step, and what clipping does.

The formulas, with their sources, are in `hookviz.explaining.layers.training_health`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order, target
from hookviz.codegen.script_text import quoted, source_of
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel
from hookviz.explaining.layers.training_health import (
    EXPLODING,
    LOST,
    VANISHING,
    ClipAt,
    Floats,
    WeightGradients,
    clip,
    clip_factor,
    differs,
    largest,
    nearest_strength,
    norm,
    real_parts,
    verdicts_of,
    weight_gradients,
)
from hookviz.language.saying import joined, mark, say, sentences
from hookviz.lenses.contract.lens import RIGHT, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice, OneOf, RealNumber
from hookviz.wording import number

_VERDICTS = {
    "vanishing": mark(
        "The gradient vanishes in {count:,} of {layer_count:,} layers: {layers}{rest}."
    ),
    "exploding": mark(
        "The gradient explodes in {count:,} of {layer_count:,} layers: {layers}{rest}."
    ),
}
_ANSWERS = {
    "exploding": mark("The gradient explodes on its way, in {count:,} of {layer_count:,} layers."),
    "vanishing": mark("{count:,} of {layer_count:,} layers hardly learn: the gradient vanishes."),
}
_EQUAL_UP_TO = 1.5  # times as strong, up to which two layers learn about as fast
_HEAD = (
    mark("layer"),
    mark("weights"),
    "‖g‖",
    mark("max |g|"),
    mark("zeros (%)"),
    "‖g‖ / ‖w‖",
    mark("verdict"),
)


def run(
    subject: Subject, *, target: int, clipping: str, limit: float, at: str | None, at_side: str
) -> LensOutput:
    """Return the gradients of the weights of every conv and linear layer, in order of execution.

    The loss is L = −log of the target's probability for this one image, which is the cross entropy
    of scores before a softmax; where there are no probabilities it is −score. Batch norm uses its
    stored averages and nothing is dropped, as in eval mode: one image has no statistics of a batch.

    The strength of a layer is ‖∂L/∂w‖₂ / ‖w‖₂, the share by which a step with learning rate 1
    would move its weights. It is compared with the layer nearest to the loss that has a gradient:
    below 10⁻⁴ times that the gradient vanishes, above 10⁴ times that it explodes. A strength below
    10⁻⁸ has vanished whatever the others are, as float32 keeps 7 digits of a weight; so has a
    gradient of 0, and one with NaN or infinities has exploded.

    Clipping is over all parameters, biases and norms included: by value each g becomes
    min(max(g, −limit), limit); by norm every g is multiplied by min(1, limit / (‖all g‖₂ + 10⁻⁶)).
    With `at` the gradient at what that layer puts out, or by `at_side` is given, is clipped
    instead, by itself and on its way back, and the layers before it get what comes of that.

    Values, one per layer: ``norm``, ``largest`` (max |g|), ``zeros`` (the share of exact 0),
    ``strength``; with clipping ``norm_clipped`` and ``largest_clipped``, with `at` ``changed`` too;
    ``loss`` and ``total_norm``, with `at` ``norm_at`` and ``norm_at_clipped``.

    Raises:
        ModelError: no layer has weights of its own, or the network can't be differentiated.
    """
    clip_at = ClipAt(at, clipping, limit, side=at_side) if at and clipping != "none" else None
    passes = 2 if clip_at else 1
    gradients = weight_gradients(
        subject.model,
        subject.model_input,
        target,
        lambda share: subject.progress(share / passes),
    )
    by_layer = gradients.by_layer.values()
    values = {
        "norm": gradients.norms,
        "largest": np.array(list(map(largest, by_layer))),
        "zeros": np.array([float((gradient == 0).float().mean()) for gradient in by_layer]),
        "strength": gradients.strengths,
        "loss": np.array(gradients.loss),
        "total_norm": np.array(gradients.total_norm),
    }
    verdicts = verdicts_of(values["norm"], values["strength"])
    panels: list[Panel] = [
        TextPanel(_answer(values["strength"], verdicts), "answer"),
        _first(subject, target, gradients, values, verdicts),
    ]
    if clipping != "none":
        if clip_at is None:
            clipped = gradients.clipped(clipping, limit)
            said = _clipping(gradients, clipping, limit)
        else:
            again = weight_gradients(
                subject.model,
                subject.model_input,
                target,
                lambda share: subject.progress((1 + share) / passes),
                clip_at,
            )
            clipped = list(again.by_layer.values())
            values["changed"] = np.array(list(map(differs, by_layer, clipped)))
            values["norm_at"] = np.array(clip_at.before)
            values["norm_at_clipped"] = np.array(clip_at.after)
            said = _upstream(clip_at, str(at), at_side, gradients, values)
        values["norm_clipped"] = np.array(list(map(norm, clipped)))
        values["largest_clipped"] = np.array(list(map(largest, clipped)))
        panels.append(said)
    panels += [*_charts(gradients, values), _table(gradients, values, verdicts)]
    return tuple(panels), values


def _answer(strengths: Floats, verdicts: Sequence[str]) -> str:
    """Say in one sentence how fast the first layers learn beside the last."""
    for verdict, sentence in _ANSWERS.items():
        if count := sum(each == verdict for each in verdicts):
            return say(sentence, count=count, layer_count=len(verdicts))
    first, last = float(strengths[0]), float(strengths[-1])
    if len(strengths) == 1:
        return say("The one layer with weights gets a gradient, and learns.")
    if not max(first, last) > _EQUAL_UP_TO * min(first, last):
        return say("The first layer learns about as fast as the last.")
    text = (
        mark("The first layer learns {times} times slower than the last.")
        if first < last
        else mark("The first layer learns {times} times faster than the last.")
    )
    return say(text, times=number(max(first, last) / min(first, last)))


def _first(
    subject: Subject,
    target: int,
    gradients: WeightGradients,
    values: dict[str, Floats],
    verdicts: list[str],
) -> TextPanel:
    """Say what vanishes and explodes."""
    said = [
        say(
            "The loss for {label} is {loss}.",
            label=subject.label(target),
            loss=number(gradients.loss),
        )
    ]
    for verdict, sentence in _VERDICTS.items():
        names = [
            name for name, told in zip(gradients.by_layer, verdicts, strict=True) if told == verdict
        ]
        if names:
            more = say(" and {count:,} more", count=len(names) - 4) if len(names) > 4 else ""
            said.append(
                say(
                    sentence,
                    count=len(names),
                    layer_count=len(verdicts),
                    layers=joined(names[:4]),
                    rest=more,
                )
            )
    if not any(verdicts):
        strength = values["strength"][np.isfinite(values["strength"])]
        said.append(
            say(
                "No gradient vanishes or explodes: ‖g‖ is between {smallest} and {largest} of ‖w‖ "
                "in every layer.",
                smallest=number(strength.min()),
                largest=number(strength.max()),
            )
        )
    if gradients.loss < 1e-2 and subject.answer.reading.is_share:
        said.append(
            say(
                "The network is sure of this class already, so every gradient is small; "
                "another class gives larger ones."
            )
        )
    if any("BatchNorm" in info.kind for info in subject.trace.layers):
        said.append(say("Batch norm uses its stored averages."))
    return TextPanel(sentences(*said), "bad" if any(verdicts) else "good")


def _clipping(gradients: WeightGradients, clipping: str, limit: float) -> TextPanel:
    if clipping == "by norm":
        total = gradients.total_norm
        factor = clip_factor(total, limit)
        does = (
            say("multiplies every gradient by {factor}", factor=number(factor))
            if factor < 1
            else say("changes nothing")
        )
        return TextPanel(
            say(
                "The norm of all gradients together is {total}: clipping it to {limit} {effect}.",
                total=number(total),
                limit=number(limit),
                effect=does,
            )
        )
    cut = sum(int((gradient.abs() > limit).sum()) for gradient in gradients.every)
    count = sum(gradient.numel() for gradient in gradients.every)
    return TextPanel(
        say(
            "Clipping by value to ±{limit} changes {clipped_count:,} of {count:,} numbers.",
            limit=number(limit),
            clipped_count=cut,
            count=count,
        )
    )


def _upstream(
    clip_at: ClipAt, at: str, side: str, gradients: WeightGradients, values: dict[str, Floats]
) -> TextPanel:
    """Say what clipping at a layer does there, and to the layers before it."""
    before, after = float(values["norm_at"]), float(values["norm_at_clipped"])
    of_inputs = side == "inputs"
    if of_inputs and not clip_at.needed:
        return TextPanel(
            say(
                "What {layer} is given needs no gradient, as an image needs none, so there is none "
                "to clip. A backward hook there has None in its grad_input, and "
                "grad_input[0].clamp(…) fails.",
                layer=at,
            )
        )
    if not before:
        nothing = (
            mark("The gradient at what {layer} is given is 0: there is nothing to clip.")
            if of_inputs
            else mark("No gradient comes to what {layer} puts out, so there is none to clip.")
        )
        return TextPanel(say(nothing, layer=at))
    where = (
        mark("At the input of {layer} the gradient's norm is {norm}")
        if of_inputs
        else mark("At the output of {layer} the gradient's norm is {norm}")
    )
    there = say(where, layer=at, norm=number(before))
    if before == after:
        return TextPanel(
            say("{finding}: clipping changes nothing there, and nothing before it.", finding=there)
        )
    names = [
        name for name, changed in zip(gradients.by_layer, values["changed"], strict=True) if changed
    ]
    kept = len(gradients.by_layer) - len(names)
    if not names:
        return TextPanel(
            say(
                "{finding}, clipped {clipped_norm}: no layer before it has weights.",
                finding=there,
                clipped_norm=number(after),
            )
        )
    reach = (
        names[0] if len(names) == 1 else say("{first} to {last}", first=names[0], last=names[-1])
    )
    return TextPanel(
        say(
            "{finding}, clipped {clipped_norm}. That changes the gradients of {changed_count:,} of "
            "{layer_count:,} layers, {layer_range}, through which it flows on; the other "
            "{unchanged_count:,} keep theirs.",
            finding=there,
            clipped_norm=number(after),
            changed_count=len(names),
            layer_count=len(gradients.by_layer),
            layer_range=reach,
            unchanged_count=kept,
        )
    )


def _charts(
    gradients: WeightGradients, values: dict[str, Floats]
) -> tuple[ChartPanel, ChartPanel, ChartPanel]:
    labels = tuple(gradients.by_layer)
    series = {"‖g‖": values["norm"], say("max |g|"): values["largest"]}
    if "norm_clipped" in values:
        series[say("‖g‖ clipped")] = values["norm_clipped"]
        series[say("max |g| clipped")] = values["largest_clipped"]
    sizes = ChartPanel(
        say("Gradient of each layer's weights"),
        labels,
        series,
        kind="lines",
        unit=say("size of the gradient"),
        log=True,
        caption=say("From the input, left, to the loss, right. What is 0 has no point."),
    )
    nearest = nearest_strength(values["norm"], values["strength"])
    strength = ChartPanel(
        say("Strength against the layer nearest to the loss"),
        labels,
        {
            "‖g‖ / ‖w‖": values["strength"],
            say("explodes above"): np.full(len(labels), EXPLODING * nearest),
            say("vanishes below"): np.full(len(labels), max(LOST, VANISHING * nearest)),
        },
        kind="lines",
        unit="‖g‖ / ‖w‖",
        log=True,
        caption=say(
            "The lines stand at {exploding} and 1/{vanishing} times the strength of the "
            "last layer that has a gradient.",
            exploding=number(EXPLODING),
            vanishing=number(1 / VANISHING),
        ),
    )
    zeros = ChartPanel(
        say("Weights without any gradient"),
        labels,
        {say("zeros"): 100 * values["zeros"]},
        unit=say("gradient exactly 0 (%)"),
        caption=say("Units that are switched off pass no gradient on."),
    )
    return sizes, strength, zeros


def _table(
    gradients: WeightGradients, values: dict[str, Floats], verdicts: list[str]
) -> TablePanel:
    clipped = "norm_clipped" in values
    changed = values.get("changed")
    rows: list[tuple[str | int | float, ...]] = [
        (
            name,
            gradient.numel(),
            number(float(values["norm"][index])),
            number(float(values["largest"][index])),
            number(100 * float(values["zeros"][index])),
            number(float(values["strength"][index])),
            *([number(float(values["norm_clipped"][index]))] if clipped else []),
            *(["changed" if changed[index] else ""] if changed is not None else []),
            say(verdicts[index]) if verdicts[index] else say("fine"),
        )
        for index, (name, gradient) in enumerate(gradients.by_layer.items())
    ]
    more = [*(["‖g‖ clipped"] if clipped else []), *(["upstream"] if changed is not None else [])]
    head = (*_HEAD[:-1], *more, _HEAD[-1])
    return TablePanel(say("Layer by layer, in order of execution"), head, tuple(rows))


def script(facts: LensFacts) -> LensCode:
    """Write code for the gradients of the weights of every conv and linear layer, and clipping."""
    clipping, at = facts.chosen["clipping"], facts.chosen.get("at")
    functions: list[Callable[..., Any]] = [real_parts, norm, largest]
    lines = [_GRADIENTS]
    values = {
        "norm": "norms",
        "largest": "[largest(gradient) for gradient in gradients]",
        "zeros": "[(gradient == 0).float().mean().item() for gradient in gradients]",
        "strength": "norms / np.array([norm(weight) for weight in weights])",
        "total_norm": "total_norm",
        "loss": "loss.item()",
    }
    if clipping != "none":
        says = "of that gradient" if at else "of the gradients"
        of_inputs = facts.chosen.get("at_side") == "inputs"
        whose = "whose input's gradient is clipped" if of_inputs else _WHOSE_OUTPUTS
        comments = {"at": whose} if at else {}
        lines += [constants(facts, **comments, limit=says)]
        hook = _AT_INPUTS if of_inputs else _AT_OUTPUTS
        lines += [_AT.format(clipping=quoted(clipping), hook=hook) if at else _CLIP[clipping]]
        functions += [clip_factor, clip, differs] if at else []
        values["norm_clipped"] = "[norm(gradient) for gradient in clipped]"
        values["largest_clipped"] = "[largest(gradient) for gradient in clipped]"
        if at:
            values["changed"] = "[differs(*pair) for pair in zip(gradients, clipped, strict=True)]"
            values |= {"norm_at": "np.linalg.norm(came)", "norm_at_clipped": "np.linalg.norm(went)"}
    return in_order(target(facts), source_of(*functions), *lines), values


_GRADIENTS = """
layers = []  # with weights, in order of execution


def note(module, inputs, output):
    if module not in layers:
        layers.append(module)


for module in model.modules():
    if isinstance(module, (nn.modules.conv._ConvNd, nn.Linear)):
        module.register_forward_hook(note)
# One training step on one image, in eval mode: batch norm uses its stored averages.
model.requires_grad_()  # whatever was frozen
loss = nn.functional.cross_entropy(model(batch), torch.tensor([TARGET]))
loss.backward()
weights = [each.weight for each in layers if isinstance(each.weight, nn.Parameter)]
weights = [weight for weight in weights if weight.grad is not None]
gradients = [weight.grad.clone() for weight in weights]
norms = np.array([norm(gradient) for gradient in gradients])
# Of all parameters together, biases and norms included, as clipping by norm takes it.
every = [each.grad for each in model.parameters() if each.grad is not None]
total_norm = np.linalg.norm([norm(gradient) for gradient in every])"""
_CLIP = {
    "by value": """\
nn.utils.clip_grad_value_(model.parameters(), LIMIT)
clipped = [weight.grad for weight in weights]""",
    "by norm": """\
nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
clipped = [weight.grad for weight in weights]""",
}
_AT = """\
came, went = [], []  # norms of the gradient at the layer


def clip_there(gradient):
    came.append(norm(gradient))
    gradient = clip(gradient, {clipping}, LIMIT)
    went.append(norm(gradient))
    return gradient  # what goes on to the layers before


{hook}
nn.functional.cross_entropy(model(batch), torch.tensor([TARGET])).backward()
handle.remove()
clipped = [weight.grad for weight in weights]"""
_AT_OUTPUTS = """\
def clip_at(module, inputs, output):
    output.register_hook(clip_there)
    return output.clone()  # an in-place ReLU that follows would write over the original


model.zero_grad()
handle = model.get_submodule(AT).register_forward_hook(clip_at)"""
_AT_INPUTS = """\
def clip_at(module, inputs):
    for each in inputs:
        if each.requires_grad:  # an image does not: no gradient comes to it
            each.register_hook(clip_there)


model.zero_grad()
handle = model.get_submodule(AT).register_forward_pre_hook(clip_at)"""
_WHOSE_OUTPUTS = "whose output's gradient is clipped"


LENS = Lens(
    slug="gradient-flow",
    title=mark("Gradient flow"),
    question=mark("How would the network learn?"),
    sentence=mark(
        "How much gradient reaches each layer in a training step, and what clipping does."
    ),
    group=RIGHT,
    run=run,
    script=script,
    parameters=(
        ClassChoice(),
        OneOf(
            name="clipping",
            label=mark("Clip"),
            choices=(mark("none"), mark("by value"), mark("by norm")),
        ),
        RealNumber(
            name="limit",
            label=mark("Limit"),
            matters_for=("clipping", (mark("by value"), mark("by norm"))),
            low=1e-9,
            high=1e9,
            default=0.1,
        ),
        LayerChoice(
            name="at",
            label=mark("Clip at layer"),
            kind="all",
            default="none",
            matters_for=("clipping", (mark("by value"), mark("by norm"))),
            help=mark(
                "Clip the gradient at what this layer puts out, and see what comes of it in "
                "the layers before; else the gradients of all parameters."
            ),
        ),
        OneOf(
            name="at_side",
            label=mark("On its side"),
            choices=(mark("outputs"), mark("inputs")),
            matters_for=("at", ()),
            help=mark("At what the layer puts out, or at what it is given."),
        ),
    ),
)
