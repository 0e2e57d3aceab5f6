"""Put parts of another image's activations into this image's pass, and see what a class scores.

Activation patching, with attribution patching beside it: see `hookviz.explaining.patching.patch`.
This image is the corrupted one there, the other image the clean one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hookviz.capturing.batch_images import named
from hookviz.capturing.inputs import prepare_input
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import batches, constant_of, constants, file_of, in_order, target
from hookviz.codegen.script_text import as_maps
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.comparison_pages import heads_by_layer
from hookviz.drawing.panels import ChartPanel, Panel, TablePanel, TextPanel, overlay_panel
from hookviz.errors import SettingError
from hookviz.explaining.patching.patch import Patching, PatchRow, Shares, patch_inputs
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Subject
from hookviz.lenses.contract.many_images import prepared_alike
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice, MoreImages, OneOf
from hookviz.types import ModelInput
from hookviz.wording import number

_CHART = 16  # channels or heads that the chart shows
_HEAD = (mark("share"), mark("by gradient"))
_BY = {
    mark("layers"): "layer",
    mark("channels"): "channel",
    mark("cells"): "cell",
    mark("heads"): "head",
}


def run(
    subject: Subject, *, by: str, layer: str, images: tuple[Any, ...], target: int
) -> LensOutput:
    """Return how far each part brings a class's score, from this image's to the other image's.

    ``(patched - this) / (other - this)``, of each convolution and linear layer over tokens, of
    each channel or cell of one layer, or of each attention head of the network. Values: ``shares``
    and ``direct``, the gradient's estimate, float64 ``(layers,)``, ``(C,)``, ``(H, W)`` or
    ``(layers, heads)``, NaN behind a layer's last head; and ``scores`` of this image and the other.

    Raises:
        SettingError: there is no other image, or the class scores the same on both.
        ModelError: the network puts out no class scores, the layer has no channels or cells, or
            nothing in the network attends.
    """
    name, other = _other_input(subject, images)
    layers: list[str] | None = [layer]
    if by == "layers":
        layers = [info.name for info in subject.trace.convs_and_linears] or layers
    elif by == "heads":
        layers = None
    found = patch_inputs(
        subject.model,
        other,
        subject.model_input,
        layers,
        target=target,
        by=_BY[by],
        progress=subject.progress,
    )
    shares, direct = (_one_array(each, found.by) for each in (found.shares, found.direct))
    best = found.table(1)[0]
    answer = say(
        "{part} carries {share:.0f} % of the difference between the two images.",
        part=_part_name(best),
        share=100 * best.share,
    )
    panels: list[Panel] = [
        TextPanel(answer, "answer"),
        TextPanel(_summarize(subject, found, best, target, name)),
    ]
    if found.note:
        panels.append(TextPanel(found.note, "note"))
    panels += [_overlay(subject, shares)] if by == "cells" and shares.ndim == 2 else _bars(found)
    scores = np.array([found.corrupted, found.clean])
    return tuple(panels), {"shares": shares, "direct": direct, "scores": scores}


def _one_array(shares: Mapping[str, Shares], by: str) -> Shares:
    """Return the shares of the one layer, or of all."""
    if by == "head":
        return heads_by_layer(shares)
    return np.array([*shares.values()]) if by == "layer" else next(iter(shares.values()))


def _other_input(subject: Subject, images: tuple[Any, ...]) -> tuple[str, ModelInput]:
    """Return the first of the images that is not the one looked at, by its name, as an input."""
    first = subject.image if subject.image is not None else subject.model_input
    (own, _), *others = named([first, *images]).items()
    for name, image in others:
        alike = prepared_alike(subject, {own: first, name: image}, ProgressReporter(None))
        model_input = prepare_input(subject.model, alike[name])
        if model_input.digest != subject.model_input.digest:
            return name, model_input
    raise SettingError(
        say(
            "There is no other image to take parts from. Give one, such as "
            "images=['other.jpg'], that is not the one looked at."
        )
    )


def _summarize(subject: Subject, found: Patching, best: PatchRow, target: int, name: str) -> str:
    return say(
        "The score of {label} is {low} on this image and {high} on {other}. {part} of the other "
        "image brings {share:.0f}% of the difference, more than any other part here.",
        label=subject.label(target),
        low=number(found.corrupted),
        high=number(found.clean),
        other=name,
        part=_part_name(best),
        share=100 * best.share,
    )


def _overlay(subject: Subject, shares: Shares) -> Panel:
    """Show the shares of cells over the image."""
    title, top = say("Share of the difference"), float(np.abs(shares).max()) or 1.0
    picture = coloured(shares.astype(np.float32), "RdBu_r", low=-top, high=top)
    text = say(
        "{words} Red is above 0, blue below; the strongest is {top}.",
        words=_scale_says(),
        top=number(top),
    )
    return overlay_panel(
        title, subject.model_input, subject.image, picture, alt=title, caption=text
    )


def _bars(found: Patching) -> list[Panel]:
    """Show the layers, or the strongest channels or heads, as a chart and in numbers."""
    rows = found.table()
    if found.by != "layer":
        rows = tuple(sorted(rows, key=lambda row: -abs(row.share))[:_CHART])
    is_of_one = found.by in ("channel", "cell")
    names = tuple(_place(row) if is_of_one else _part_name(row) for row in rows)
    chart = ChartPanel(
        say("Share of the difference"),
        names,
        {
            say("share"): np.array([row.share for row in rows]),
            say("by gradient"): np.array([row.direct for row in rows]),
        },
        unit=say("share"),
        caption=_scale_says(),
        layer=rows[0].layer if found.by == "channel" else "",
    )
    table = tuple(
        (name, number(row.share), number(row.direct)) for name, row in zip(names, rows, strict=True)
    )
    first = {"layer": mark("layer"), "head": mark("head")}.get(found.by, mark("channel"))
    return [chart, TablePanel(say("In numbers"), (first, *_HEAD), table)]


def _place(row: PatchRow) -> str:
    return ", ".join(map(str, row.part))


def _part_name(row: PatchRow) -> str:
    return f"{row.layer} [{_place(row)}]" if row.part else row.layer


def _scale_says() -> str:
    return say("1 is the whole way to the other image's score, 0 none of it.")


def script(facts: LensFacts) -> LensCode:
    """Write code for the score with each part of the other image's activations."""
    by = facts.chosen["by"]
    others = batches(file_of(name) for name in named(facts.chosen["images"]))
    values = {"shares": "shares", "scores": "np.array([this_score, other_score])"}
    if by == "heads":
        return in_order(target(facts), others, _HEADS), values
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
        others,
        _SCORES,
        _SHARES.format(parts=parts, names="NAMES" if by == "layers" else "[LAYER]", shape=shape),
    ]
    return in_order(*lines), values


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
_HEADS = '''
running = []  # names of the modules that run, innermost last


def leave(module, given, output):
    running.pop()


for name, module in model.named_modules():
    module.register_forward_pre_hook(lambda module, given, name=name: running.append(name))
    module.register_forward_hook(leave)


class Heads(TorchFunctionMode):
    """Give what the heads of a layer put out, `(images, heads, queries, numbers)`, to a function.

    What it returns takes their place, before the output projection mixes the heads.
    """

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.weights = None  # a softmax's, until they are multiplied with the values

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__
        if name == "multi_head_attention_forward":
            return self.multi_head(function, inspect.signature(function).bind(*args, **kwargs))
        output = function(*args, **kwargs)
        if name == "scaled_dot_product_attention":
            return self.change(running[-1], output)
        if name == "softmax" or (name == "dropout" and args[0] is self.weights):
            self.weights = output
        elif name in ("matmul", "__matmul__") and args[0] is self.weights:
            return self.change(running[-1], output)
        return output

    def multi_head(self, function, given):
        given = given.arguments
        weight, bias = given["out_proj_weight"], given["out_proj_bias"]
        unmixed = {"out_proj_weight": torch.eye(len(weight)), "out_proj_bias": None}
        mixed, weights = function(**given | unmixed)  # (queries, images, numbers of all heads)
        heads = mixed.unflatten(-1, (given["num_heads"], -1)).permute(1, 2, 0, 3)
        changed = self.change(running[-1], heads).permute(2, 0, 1, 3).flatten(2)
        return nn.functional.linear(changed, weight, bias), weights


def score_of(images, change):
    """The class's score, with what `change` makes of each layer's heads."""
    with torch.no_grad(), Heads(change):
        return model(images)[0, TARGET].item()


def patched_score(layer, head):
    """The score for this image, with one head as it is for the other one."""
    calls = iter(clean[layer])  # a layer can run several times

    def patch(name, heads):
        if name != layer:
            return heads
        patched = heads.clone()
        patched[:, head] = next(calls)[:, head]
        return patched

    return score_of(batch, patch)


clean = {}


def keep(name, heads):
    clean.setdefault(name, []).append(heads.clone())
    return heads


other = next(each for each in batches.values() if not torch.equal(each, batch))
other_score = score_of(other, keep)
this_score = score_of(batch, lambda name, heads: heads)
shares = np.full((len(clean), max(calls[0].shape[1] for calls in clean.values())), np.nan)
for row, (layer, calls) in zip(shares, clean.items(), strict=True):
    for head in range(calls[0].shape[1]):
        row[head] = (patched_score(layer, head) - this_score) / (other_score - this_score)
'''

LENS = Lens(
    slug="patching",
    title=mark("Activation patching"),
    question=mark("What if this part came from the other image?"),
    sentence=mark(
        "How far a layer, a channel, a cell or an attention head of another image brings a class's "
        "score to its own."
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
            help=mark("Whole layers, the channels or cells of one, or all attention heads."),
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
