"""Put parts of another image's activations into this image's pass, and see what a class scores.

Activation patching, with attribution patching beside it: see `hookviz.explaining.patching.patch`.
This image is the corrupted one there, the other image the clean one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.batch_images import named
from hookviz.capturing.inputs import prepare
from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.lens_parts import batches, constant_of, constants, file_of, in_order, target
from hookviz.codegen.wording import as_maps
from hookviz.drawing.palette import coloured
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel, overlay_panel
from hookviz.errors import SettingError
from hookviz.explaining.patching.patch import Patching, patch_inputs
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Subject
from hookviz.lenses.contract.more_images import prepared_alike
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice, MoreImages, OneOf
from hookviz.types import ModelInput
from hookviz.wording import number

_CHART = 16  # channels that the chart shows
_HEAD = (mark("layer"), mark("share"), mark("by gradient"))
_BY = {mark("layers"): "layer", mark("channels"): "channel", mark("cells"): "cell"}


def run(
    subject: Subject, *, by: str, layer: str, images: tuple[Any, ...], target: int
) -> LensOutput:
    """Return how far each part brings a class's score, from this image's to the other image's.

    ``(patched - this) / (other - this)``, of each convolution and linear layer over tokens, or of
    each channel or cell of one layer. Values: ``shares`` and ``direct``, the gradient's estimate,
    float64 ``(layers,)``, ``(C,)`` or ``(H, W)``; and ``scores`` of this image and the other.

    Raises:
        SettingError: there is no other image, or the class scores the same on both.
        ModelError: the network puts out no class scores, or the layer has no channels or cells.
    """
    name, other = _other(subject, images)
    listed = [info.name for info in subject.trace.convs_and_linears] if by == "layers" else []
    layers = listed or [layer]
    found = patch_inputs(
        subject.model,
        *(other, subject.model_input, layers),
        target=target,
        by=_BY[by],
        progress=subject.progress,
    )
    shares, direct = (
        np.array([*each.values()]) if by == "layers" else each[layer]
        for each in (found.shares, found.direct)
    )
    panels: list[Panel] = [TextPanel(_says(subject, found, target, name))]
    if found.note:
        panels.append(TextPanel(found.note, "note"))
    panels += _panels(subject, found, shares, direct)
    scores = np.array([found.corrupted, found.clean])
    return tuple(panels), {"shares": shares, "direct": direct, "scores": scores}


def _other(subject: Subject, images: tuple[Any, ...]) -> tuple[str, ModelInput]:
    """Return the first of the images that is not the one looked at, by its name, as an input."""
    first = subject.image if subject.image is not None else subject.model_input
    (own, _), *others = named([first, *images]).items()
    for name, image in others:
        alike = prepared_alike(subject, {own: first, name: image}, ProgressReporter(None))
        model_input = prepare(subject.model, alike[name])
        if model_input.digest != subject.model_input.digest:
            return name, model_input
    raise SettingError(
        say(
            "There is no other image to take parts from. Give one, such as "
            "images=['other.jpg'], that is not the one looked at."
        )
    )


def _says(subject: Subject, found: Patching, target: int, name: str) -> str:
    best = found.table(1)[0]
    place = ", ".join(map(str, best.part))
    return say(
        "The score of {label} is {low} on this image and {high} on {other}. {part} of the other "
        "image brings {share:.0f}% of the difference, more than any other part here.",
        label=subject.label(target),
        low=number(found.corrupted),
        high=number(found.clean),
        other=name,
        part=f"{best.layer} [{place}]" if place else best.layer,
        share=100 * best.share,
    )


def _panels(
    subject: Subject, found: Patching, shares: NDArray[np.float64], direct: NDArray[np.float64]
) -> list[Panel]:
    """Show the layers or channels as a chart, or the cells over the image."""
    words = say("1 is the whole way to the other image's score, 0 none of it.")
    title, layer = say("Share of the difference"), next(iter(found.shares))
    if found.by == "cell" and shares.ndim == 2:
        top = float(np.abs(shares).max()) or 1.0
        picture = coloured(shares.astype(np.float32), "RdBu_r", low=-top, high=top)
        text = say(
            "{words} Red is above 0, blue below; the strongest is {top}.",
            words=words,
            top=number(top),
        )
        panel = overlay_panel(
            title, subject.model_input, subject.image, picture, alt=title, caption=text
        )
        return [panel]
    order = np.arange(len(shares))
    if found.by == "channel":
        order = np.argsort(-np.abs(shares), kind="stable")[:_CHART]
    names = list(found.shares) if found.by == "layer" else [str(index) for index in order]
    chart = ChartPanel(
        title,
        tuple(names),
        {say("share"): shares[order], say("by gradient"): direct[order]},
        unit=say("share"),
        caption=words,
        layer=layer if found.by == "channel" else "",
    )
    rows = tuple(
        (names[place], number(shares[index]), number(direct[index]))
        for place, index in enumerate(order)
    )
    head = _HEAD if found.by == "layer" else (mark("channel"), *_HEAD[1:])
    return [chart, TablePanel(say("In numbers"), head, rows)]


def script(facts: LensFacts) -> LensCode:
    """Write code for the score with each part of the other image's activations."""
    by = facts.chosen["by"]
    layout = facts.layout
    axis = -1 if layout.last else 1
    parts = {
        "channels": f"places.movedim({axis}, 0)",
        "cells": f"places{as_maps(layout)}[0].flatten(1).T",
        "layers": "[places]",
    }[by]
    shape = ", ".join(map(str, facts.values["shares"]))
    lines = [
        constant_of(facts.convs_and_linears) if by == "layers" else constants(facts, layer=""),
        target(facts),
        batches(file_of(name) for name in named(facts.chosen["images"])),
        _SCORES,
        _SHARES.format(parts=parts, names="NAMES" if by == "layers" else "[LAYER]", shape=shape),
    ]
    return in_order(*lines), {"shares": "shares", "scores": "np.array([this_score, other_score])"}


_SCORES = '''

def score_of(images, layer, change):
    """The class's score, with what `change` makes of each output of a layer."""

    def hook(module, inputs, output):  # what a hook returns takes the output's place
        return change(output)

    handle = model.get_submodule(layer).register_forward_hook(hook)
    with torch.no_grad():
        score = model(images)[0, TARGET].item()
    handle.remove()
    return score


'''
_SHARES = '''
def patched_score(layer, clean, part):
    """The score for this image, with a part of what the layer puts out for the other one."""
    calls = iter(clean)  # a layer can run several times

    def patch(output):
        patched, numbers = output.flatten().clone(), part.flatten()
        patched[numbers] = next(calls).flatten()[numbers]
        return patched.reshape(output.shape)

    return score_of(batch, layer, patch)


def patched_scores(layer):
    """The scores for this image, with each part of the layer in turn."""
    clean = []
    score_of(other, layer, lambda output: clean.append(output.clone()))
    places = torch.arange(clean[0].numel()).reshape(clean[0].shape)
    parts = {parts}
    return [patched_score(layer, clean, part) for part in parts]


other = next(each for each in batches.values() if not torch.equal(each, batch))
with torch.no_grad():
    this_score, other_score = (model(each)[0, TARGET].item() for each in (batch, other))
scores = np.array([score for name in {names} for score in patched_scores(name)])
shares = ((scores - this_score) / (other_score - this_score)).reshape({shape})
'''

LENS = Lens(
    slug="patching",
    title=mark("Activation patching"),
    question=mark("What if this part came from the other image?"),
    sentence=mark(
        "How far a layer, a channel or a cell of another image brings a class's score to its own."
    ),
    group=WHAT_IF,
    run=run,
    of_images=True,
    script=script,
    parameters=(
        OneOf(
            name="by",
            label=mark("Parts"),
            choices=tuple(_BY),
            help=mark("Whole layers, or the channels or cells of one."),
        ),
        LayerChoice(kind="maps", default="last map", matters_for=("by", ("channels", "cells"))),
        MoreImages(
            samples=True,
            label=mark("The other image"),
            help=mark("The first of these that is not the one looked at."),
        ),
        ClassChoice(),
    ),
)
