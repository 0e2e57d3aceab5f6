"""Find which channel of a layer matters most to a class: each is switched off by itself.

Leave-one-out occlusion of units, as in Zhou et al., "Revisiting the Importance of Individual Units
in CNNs via Ablation" (2018); many of them in one pass, see `hookviz.explaining.channel_ablation`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.lens_parts import SCORES_WITHOUT, constants, in_order, target
from hookviz.drawing.chosen_channels import with_channels
from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import ChartPanel, GridPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, ModelError
from hookviz.explaining.batch_independence import batch_tolerance
from hookviz.explaining.channel_ablation import ChannelAblation
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice
from hookviz.types import LayerInfo
from hookviz.wording import number

Floats = NDArray[np.float64]
_TOP = 10
_HEAD = (
    mark("channel"),
    mark("score without it"),
    mark("change of score"),
    mark("probability without it (%)"),
    mark("points"),
)


def run(subject: Subject, *, layer: str, target: int) -> LensOutput:
    """Return how the class's score and probability change without each channel.

    A channel is switched off by writing 0 at the convolution's own output, each time that the layer
    runs: Δc = score(channel c at 0) − score. A negative Δ says that the channel speaks for the
    class. Values: ``logit_change`` and ``probability_change`` ``(C,)``; ``logit`` and
    ``probability`` of the untouched pass.

    Raises:
        ModelError: the network can't go on without a channel, or has no finite class scores.
    """
    info = next(conv for conv in subject.convs if conv.name == layer)
    whole = subject.capture(layer, logits=True)
    maps = whole[layer].values.numpy()
    if maps.ndim != 3:
        raise HookVizError(
            say(
                "{layer} of {model} puts out {shape}, and this lens draws channels that are "
                "maps, (C, H, W): choose a layer with a two-dimensional kernel.",
                layer=layer,
                model=subject.model.title,
                shape=maps.shape,
            )
        )
    assert whole.logits is not None
    before = whole.logits.double()
    if not bool(torch.isfinite(before).all()):
        raise ModelError(
            say(
                "{model} gives scores of NaN or infinity for this image, so nothing can be "
                "told from how they change. The lens health says in which layer they begin.",
                model=subject.model.title,
            )
        )
    passes = ChannelAblation(subject.model, subject.model_input, info)
    after = passes.scores_without_each(before, ProgressReporter(subject.progress))
    changes = _ScoreChanges(
        scores=(after[:, target] - before[target]).numpy(),
        chances=(after.softmax(1)[:, target] - before.softmax(0)[target]).numpy(),
        logit=float(before[target]),
        chance=float(before.softmax(0)[target]),
        least=batch_tolerance(subject.model.network, before),
        flips=int((after.argmax(1) != before.argmax()).sum()),
    )
    values = {
        "logit_change": changes.scores,
        "probability_change": changes.chances,
        "logit": np.array(changes.logit),
        "probability": np.array(changes.chance),
    }
    return _panels(subject, info, target, maps, changes), values


@dataclass(frozen=True, eq=False, slots=True)
class _ScoreChanges:
    """Changes of the score and the probability without each channel, ``(C,)``, and both before.

    Changes of the score up to `least` are rounding.
    """

    scores: Floats
    chances: Floats
    logit: float
    chance: float
    least: float
    flips: int


def _panels(
    subject: Subject,
    info: LayerInfo,
    target: int,
    maps: NDArray[np.float32],
    changes: _ScoreChanges,
) -> tuple[Panel, ...]:
    label = subject.label(target)
    scores = changes.scores
    ranked = np.argsort(scores, kind="stable")
    falling = [int(channel) for channel in ranked if scores[channel] < -changes.least][:_TOP]
    rising = [int(channel) for channel in ranked if scores[channel] > changes.least][-_TOP:]
    listed = falling + rising
    if not listed:
        says = say(
            "No channel of {layer} alone moves the score of {label} by more than rounding.",
            layer=info.name,
            label=label,
        )
        return (TextPanel(says, "note"),)
    most = max(listed, key=lambda channel: abs(scores[channel]))
    says = say_count(
        "Of the {channel_count:,} channels of {layer}, channel {channel} matters most to "
        "{label}: without it the score goes from {score} to {new_score} and the "
        "probability from {probability} % to {new_probability} %. {for_count:,} channels speak for "
        "{label}, {against_count:,} against, and {flip_count} alone changes the prediction.",
        "Of the {channel_count:,} channels of {layer}, channel {channel} matters most to "
        "{label}: without it the score goes from {score} to {new_score} and the "
        "probability from {probability} % to {new_probability} %. {for_count:,} channels speak for "
        "{label}, {against_count:,} against, and {flip_count} alone change the prediction.",
        max(1, changes.flips),
        channel_count=len(scores),
        layer=info.name,
        channel=most,
        label=label,
        score=number(changes.logit),
        new_score=number(changes.logit + scores[most]),
        probability=number(100 * changes.chance),
        new_probability=number(100 * (changes.chance + changes.chances[most])),
        for_count=int((scores < -changes.least).sum()),
        against_count=int((scores > changes.least).sum()),
        flip_count=changes.flips or say("none"),
    )
    chart = ChartPanel(
        say("Score of {label} without one channel", label=label),
        tuple(map(str, listed)),
        {say("change"): scores[listed]},
        unit=say("change of score"),
        caption=say("By channel. Below 0: the channel speaks for the class."),
        layer=info.name,
    )
    rows = tuple(
        (
            channel,
            number(changes.logit + scores[channel]),
            number(scores[channel]),
            number(100 * (changes.chance + changes.chances[channel])),
            number(100 * changes.chances[channel]),
        )
        for channel in listed
    )
    table = TablePanel(say("The {top} that matter most, either way", top=_TOP), _HEAD, rows)
    shown = sorted(listed, key=lambda channel: -abs(scores[channel]))[:12]
    grid = GridPanel(
        say("What these channels put out"),
        with_channels(make_grid(maps, scale="symmetric", title=info.name), maps, shown),
        say("Largest change first: {channels}.", channels=", ".join(map(str, shown))),
        layer=info.name,
    )
    return TextPanel(says), chart, grid, table


def script(facts: LensFacts) -> LensCode:
    """Write code for what the class's score and probability change by without each channel."""
    lines = [
        constants(facts, layer="whose channels are switched off"),
        target(facts),
        SCORES_WITHOUT,
    ]
    lines.append(_CHANGES)
    return in_order(*lines), {
        "logit_change": "np.array(logit_change)",
        "probability_change": "np.array(probability_change)",
        "logit": "before[TARGET].item()",
        "probability": "before.softmax(0)[TARGET].item()",
    }


_CHANGES = """\
logit_change, probability_change = [], []
layer = model.get_submodule(LAYER)
for channel in range(layer.out_channels):  # a pass for each
    after = scores_without(layer, channel)
    logit_change.append((after - before)[TARGET].item())
    probability_change.append((after.softmax(0) - before.softmax(0))[TARGET].item())"""


LENS = Lens(
    slug="channels-that-matter",
    title=mark("Channels that matter"),
    question=mark("Which channels does it need?"),
    sentence=mark(
        "Which single channel of a layer a class needs most: each is switched off by itself."
    ),
    group=WHAT_IF,
    run=run,
    script=script,
    parameters=(LayerChoice(), ClassChoice()),
)
