"""Compute what would change a class's score, or another layer's channel, most at a layer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, forward, in_order, target
from hookviz.codegen.script_text import as_maps
from hookviz.drawing.panels import ChartPanel, GridPanel, Panel, TextPanel
from hookviz.explaining.attribution.gradients import last_layer_with_gradient, layer_gradient
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import ChannelChoice, ClassChoice, LayerChoice
from hookviz.lenses.contract.shared_choices import (
    call_notes,
    cell_choice,
    chosen_cell,
    target_of,
)
from hookviz.wording import number

_CHART = 24  # channels that the chart shows


def run(
    subject: Subject,
    *,
    layer: str,
    target: int | None,
    of: str | None,
    channel: int,
    row: int,
    column: int,
) -> LensOutput:
    """Return ∂q/∂A, ``(C, H, W)``: A is the layer's output in one call, q the quantity.

    q is the score of class `target` before the softmax or, where `of` is given, the mean of a
    channel of that layer, or one cell of it. The gradient is the chain rule's, by reverse-mode
    differentiation (Rumelhart, Hinton and Williams, 1986); to first order, q changes by
    ``Σ gradient · ΔA``. Values are ``gradient``, ``value`` (q), ``norm`` (√Σ g²) and
    ``max_per_channel`` (max |g|, ``(C,)``).

    Raises:
        HookVizError: q does not depend on the layer, or the network cuts gradients in between.
        SettingError: there is no such channel or cell, or of row and column one is left out.
        ModelError: no layer is chosen and the network puts out no class scores.
    """
    chosen_cell(row, column)  # one alone is refused, of a class too
    chosen = {"target": target, "layer": of, "channel": channel, "row": row, "column": column}
    quantity = target_of(subject, chosen)
    result = layer_gradient(subject.model, subject.model_input, layer, quantity, subject.progress)
    norm, largest = result.norm, result.max_per_channel
    about = say(
        "How {quantity} ({quantity_value} here) would change with every value of {layer}: red "
        "would raise it, blue would lower it. The gradient's norm is {norm}, its "
        "largest number {largest}, in channel {channel}.",
        quantity=result.target,
        quantity_value=number(result.value),
        layer=layer,
        norm=number(norm),
        largest=number(float(largest.max())),
        channel=int(largest.argmax()),
    )
    first = np.argsort(-largest, kind="stable")[:_CHART]
    panels: tuple[Panel, ...] = (
        TextPanel(_answer(result.target, layer, largest), "answer"),
        TextPanel(about),
        *(TextPanel(note, "note") for note in _notes(subject, layer, quantity, norm)),
        GridPanel(say("The gradient, channel by channel"), result.grid(), layer=layer),
        ChartPanel(
            say("Largest |gradient| of each channel"),
            tuple(map(str, first)),
            {say("max |g|"): largest[first].astype(np.float64)},
            unit=say("max |gradient|"),
            caption=say(
                "The {shown_count} of {channel_count:,} channels with the largest, by number.",
                shown_count=len(first),
                channel_count=len(largest),
            ),
            layer=layer,
        ),
    )
    return panels, {
        "gradient": result.gradient,
        "value": np.array(result.value),
        "norm": np.array(norm),
        "max_per_channel": largest,
    }


def _answer(quantity: str, layer: str, largest: NDArray[Any]) -> str:
    """Say in one sentence which channel counts."""
    if not largest.max() > 0:
        return say("{layer} does not move {quantity} here.", quantity=quantity, layer=layer)
    return say(
        "Channel {channel} of {layer} moves {quantity} most.",
        quantity=quantity,
        channel=int(largest.argmax()),
        layer=layer,
    )


def _notes(subject: Subject, layer: str, quantity: AttributionTarget, norm: float) -> list[str]:
    notes = call_notes(subject, layer, quantity.layer)
    if quantity.layer == layer:
        notes.append(say("A layer's gradient of itself says nothing new; choose an earlier layer."))
    elif norm == 0:
        other = last_layer_with_gradient(subject.model, subject.model_input, quantity, but=layer)
        hint = say(" At {layer} it is not.", layer=other) if other else ""
        notes.append(
            say(
                "The gradient is zero everywhere: no small change of {layer} changes it.{hint}",
                layer=layer,
                hint=hint,
            )
        )
    return notes


def script(facts: LensFacts) -> LensCode:
    """Write code for the gradient of a class's score, or of another layer's channel, at a layer."""
    lines = [constants(facts, layer="where the gradient is taken")]
    if facts.chosen["of"] is None:
        lines += [target(facts), forward(facts), _FORWARD.format(names="LAYER")]
        lines += ["value = scores[0, TARGET]  # before the softmax"]
    else:
        comments, part = {"of": "the layer asked about", "channel": "of that layer"}, ".mean()"
        if facts.chosen["row"] >= 0:
            comments |= {"row": "of the channel", "column": "of the channel"}
            part = "[ROW, COLUMN]"
        lines += [constants(facts, **comments), forward(facts), _FORWARD.format(names="LAYER, OF")]
        lines += [f"value = outputs[OF][0, CHANNEL]{part}"]
    return in_order(*lines, _GRADIENT.format(maps=as_maps(facts.layout))), {
        "gradient": "gradient",
        "value": "value.item()",
        "norm": "np.sqrt(np.square(gradient, dtype=np.float64).sum())",
        "max_per_channel": "np.abs(gradient).max((1, 2))",
    }


_FORWARD = """\
batch.requires_grad_()  # so that there are gradients in a frozen network, too
scores, outputs = forward(batch, {names})"""
_GRADIENT = """\
(gradient,) = torch.autograd.grad(value, outputs[LAYER])
gradient = gradient{maps}[0].numpy()  # (C, H, W)"""


LENS = Lens(
    slug="gradients",
    title=mark("Gradients at a layer"),
    question=mark("What would change the network's mind?"),
    sentence=mark("Which values of a layer would raise or lower a score, and how strongly."),
    group=WHAT_IF,
    run=run,
    script=script,
    parameters=(
        LayerChoice(
            kind="any",
            of_calls=True,
            default="last conv",
            help=mark("Whose values are changed in thought."),
        ),
        ClassChoice(
            optional=True,
            help=mark("Whose score it is about; the likeliest class where nothing is chosen."),
        ),
        LayerChoice(
            name="of",
            label=mark("Ask about layer"),
            of_calls=True,
            default="none",
            help=mark("Ask about a channel of this later layer, in place of the class."),
        ),
        ChannelChoice(
            label=mark("Its channel"),
            matters_for=("of", ()),
            help=mark("Of the layer asked about."),
        ),
        *cell_choice(("of", ())),
    ),
)
