"""Find which channel of a layer matters most to a class, or to which classes one channel does.

Each channel is switched off by itself.

Leave-one-out occlusion of units, as in Zhou et al., "Revisiting the Importance of Individual Units
in CNNs via Ablation" (2018); many of them in one pass, see
`hookviz.explaining.patching.part_changes`.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order, scores_without, target
from hookviz.drawing.grid import make_grid, with_channels
from hookviz.drawing.panels import ChartPanel, GridPanel, Panel, TablePanel, TextPanel
from hookviz.errors import ModelError, SettingError
from hookviz.explaining.attribution.batched_passes import batch_tolerance
from hookviz.explaining.patching.part_changes import ChannelAblation, ChannelEffects
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import joined, mark, say, say_count, sentences
from hookviz.lenses.contract.lens import (
    WHAT_IF,
    ChannelQuestion,
    Lens,
    LensOutput,
    Subject,
    how_note,
)
from hookviz.lenses.contract.parameters import ChannelChoice, ClassChoice, LayerChoice, OneOf
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


_CHANNELS, _CLASSES = mark("a class: which channels"), mark("a channel: which classes")
_OF_CLASS = (mark("class"), *_HEAD[1:])


def run(subject: Subject, *, layer: str, of: str, target: int, channel: int) -> LensOutput:
    """Return how a class's score and probability change without each channel.

    Or how those of each class change without one channel, if `of` says so.

    A channel is switched off by writing 0 at the layer's own output, each time that the layer runs,
    and of a linear layer in every token, the class token included: Δc = score(channel c at 0) −
    score. A negative Δ says that the channel speaks for the class. Values: ``logit_change`` and
    ``probability_change`` ``(C,)``; ``logit`` and ``probability`` of the untouched pass. Of one
    channel all four are ``(classes,)``.

    Raises:
        SettingError: the layer has no such channel.
        ModelError: the network can't go on without a channel, or has no finite class scores.
    """
    info = next(each for each in subject.trace.convs_and_linears if each.name == layer)
    whole = subject.capture(layer, logits=True)
    maps = whole[layer].values.numpy()
    subject.check_maps(layer, maps)
    before = _finite_scores(subject)
    if of == _CLASSES:
        if channel >= len(maps):
            raise SettingError(
                say(
                    "channel={channel} is not in {layer}, whose channels are 0 to {last}.",
                    channel=channel,
                    layer=info.name,
                    last=len(maps) - 1,
                )
            )
        passes = ChannelAblation(subject.model, subject.model_input, info)
        scored = [before, passes.scores_with(channel, ProgressReporter(subject.progress))]
        return _of_channel(subject, info, channel, maps, scored)
    effects = effects_on(target, subject, info)
    values = {"logit_change": effects.score_changes, "logit": np.array(effects.score)}
    if effects.probability_changes is not None:
        values["probability_change"] = effects.probability_changes
        values["probability"] = np.array(effects.probability)
    return (*_panels(subject, info, target, maps, effects), *how_note(effects.how)), values


def effects_on(target: int, subject: Subject, info: LayerInfo) -> ChannelEffects:
    """Return how the score of a class changes without each channel.

    Raises:
        ModelError: the network can't go on without a channel, or has no finite class scores.
    """
    before, reading = _finite_scores(subject), subject.answer.reading
    passes = ChannelAblation(subject.model, subject.model_input, info)
    after = passes.scores_with_each(before, ProgressReporter(subject.progress))
    shares = reading.values(before)
    return ChannelEffects(
        layer=info.name,
        label=subject.label(target),
        score=float(before[target]),
        score_changes=(after[:, target] - before[target]).numpy(),
        probability=float(shares[target]) if reading.is_share else None,
        probability_changes=(reading.values(after)[:, target] - shares[target]).numpy()
        if reading.is_share
        else None,
        rounding=batch_tolerance(subject.model.network, before),
        flips=int((after.argmax(1) != before.argmax()).sum()),
        how=passes.how,
    )


def _finite_scores(subject: Subject) -> Tensor:
    scores = subject.answer.scores.double()
    if not bool(torch.isfinite(scores).all()):
        raise ModelError(
            say(
                "{model} gives scores of NaN or infinity for this image, so nothing can be "
                "told from how they change. The lens health says in which layer they begin.",
                model=subject.model.title,
            )
        )
    return scores


def _panels(
    subject: Subject,
    info: LayerInfo,
    target: int,
    maps: NDArray[np.float32],
    effects: ChannelEffects,
) -> tuple[Panel, ...]:
    label = subject.label(target)
    scores, least = effects.score_changes, effects.rounding
    chance, chances = effects.probability or 0.0, effects.probability_changes
    is_share = chances is not None
    chances = np.zeros_like(scores) if chances is None else chances
    ranked = np.argsort(scores, kind="stable")
    falling = [int(channel) for channel in ranked if scores[channel] < -least][:_TOP]
    rising = [int(channel) for channel in ranked if scores[channel] > least][-_TOP:]
    listed = falling + rising
    if not listed:
        says = say(
            "No channel of {layer} alone moves the score of {label} by more than rounding.",
            layer=info.name,
            label=label,
        )
        return (TextPanel(says, "note"),)
    most = max(listed, key=lambda channel: abs(scores[channel]))
    lowers = int(chances.argmin())
    says = say_count(
        "Of the {channel_count:,} channels of {layer}, channel {channel} changes the score "
        "of {label} most: without it that goes from {score} to {new_score}{shares}. "
        "{for_count:,} channels speak for {label}, {against_count:,} "
        "against, and {flip_count} alone changes the prediction.",
        "Of the {channel_count:,} channels of {layer}, channel {channel} changes the score "
        "of {label} most: without it that goes from {score} to {new_score}{shares}. "
        "{for_count:,} channels speak for {label}, {against_count:,} "
        "against, and {flip_count} alone change the prediction.",
        max(1, effects.flips),
        channel_count=len(scores),
        layer=info.name,
        channel=most,
        label=label,
        score=number(effects.score),
        new_score=number(effects.score + scores[most]),
        shares=_shares(is_share, chance, chance + chances[most]),
        for_count=int((scores < -least).sum()),
        against_count=int((scores > least).sum()),
        flip_count=effects.flips or say("none"),
    )
    # Other classes' scores count in a probability, too.
    if is_share and lowers != most and chances[lowers] < 0:
        falls = say(
            "The probability falls most without channel {channel}: to {new_probability} %.",
            channel=lowers,
            new_probability=number(100 * (chance + chances[lowers])),
        )
        says = sentences(says, falls)
    caption = say("By channel. Above 0: the channel speaks for the class.")
    chart = ChartPanel.of(effects.chart(listed), caption, info.name)
    rows = tuple(
        (
            channel,
            number(effects.score + scores[channel]),
            number(scores[channel]),
            number(100 * (chance + chances[channel])),
            number(100 * chances[channel]),
        )
        for channel in listed
    )
    title = say("The {top} that change the score most, either way", top=_TOP)
    table = _table(title, _HEAD, rows, is_share=is_share)
    shown = sorted(listed, key=lambda channel: -abs(scores[channel]))[:12]
    grid = GridPanel(
        say("What these channels put out"),
        with_channels(make_grid(maps, scale="symmetric", title=info.name), maps, shown),
        say("Largest change first: {channels}.", channels=joined(map(str, shown))),
        layer=info.name,
    )
    answer = (
        mark("{label} needs channel {channel} of {layer} most.")
        if scores[most] < 0
        else mark("Channel {channel} of {layer} speaks most against {label}.")
    )
    answer = say(answer, label=label, channel=most, layer=info.name)
    return TextPanel(answer, "answer"), TextPanel(says), chart, grid, table


def _of_channel(
    subject: Subject, info: LayerInfo, channel: int, maps: NDArray[np.float32], scored: list[Tensor]
) -> LensOutput:
    """Return how each class changes without one channel; `scored` are all before and after."""
    before, after = scored
    reading = subject.answer.reading
    scores, shares = (after - before).numpy(), reading.values(before).numpy()
    chances = reading.values(after).numpy() - shares
    values = {"logit_change": scores, "logit": before.numpy()}
    if reading.is_share:
        values |= {"probability_change": chances, "probability": shares}
    grid = GridPanel(
        say("What this channel puts out"),
        with_channels(make_grid(maps, scale="symmetric", title=info.name), maps, [channel]),
        layer=info.name,
    )
    least = batch_tolerance(subject.model.network, before)
    ranked = np.argsort(scores, kind="stable")
    falling = [int(index) for index in ranked if scores[index] < -least][:_TOP]
    listed = falling + [int(index) for index in ranked if scores[index] > least][-_TOP:]
    if not listed:
        says = say(
            "Channel {channel} of {layer} alone moves no class's score by more than rounding.",
            channel=channel,
            layer=info.name,
        )
        return (TextPanel(says, "note"), grid), values
    says = say(
        "Without channel {channel} of {layer} the scores of {fall_count:,} classes fall and those "
        "of {rise_count:,} rise. {label} needs it most: its score changes by {change}{shares}.",
        channel=channel,
        layer=info.name,
        fall_count=int((scores < -least).sum()),
        rise_count=int((scores > least).sum()),
        label=subject.label(listed[0]),
        change=number(scores[listed[0]]),
        shares=_shares(reading.is_share, shares[listed[0]], shares[listed[0]] + chances[listed[0]]),
    )
    chart = ChartPanel(
        say("What channel {channel} adds to the score of each class", channel=channel),
        tuple(map(subject.label, listed)),
        {say("fall of the score"): -scores[listed]},
        unit=say("fall of the score without it"),
        caption=say("By class. Above 0: the channel speaks for the class."),
    )
    rows = tuple(
        (
            subject.label(index),
            number(values["logit"][index] + scores[index]),
            number(scores[index]),
            number(100 * (shares + chances)[index]),
            number(100 * chances[index]),
        )
        for index in listed
    )
    title = say("The {top} that change most, either way", top=_TOP)
    table = _table(title, _OF_CLASS, rows, is_share=reading.is_share)
    return (TextPanel(says), chart, table, grid), values


def _shares(is_share: bool, before: float, after: float) -> str:
    """Write how a probability changes, after how its score does; empty where there is none."""
    if not is_share:
        return ""
    return say(
        ", and its probability goes from {probability} % to {new_probability} %",
        probability=number(100 * before),
        new_probability=number(100 * after),
    )


def _table(
    title: str, head: tuple[str, ...], rows: tuple[tuple[str | int, ...], ...], *, is_share: bool
) -> TablePanel:
    """Draw a table without its columns of probabilities where there are none."""
    columns = len(head) if is_share else 3
    return TablePanel(title, head[:columns], tuple(row[:columns] for row in rows))


def script(facts: LensFacts) -> LensCode:
    """Write code for what the class's score and probability change by without each channel."""
    layer = constants(facts, layer="whose channels are switched off")
    last = facts.layout.last
    if facts.chosen["of"] == _CLASSES:
        channel = constants(facts, channel="which is switched off")
        return in_order(layer, channel, scores_without(last=last), _CLASS_CHANGES), {
            "logit_change": "(after - before).numpy()",
            "probability_change": "(after.softmax(0) - before.softmax(0)).numpy()",
            "logit": "before.numpy()",
            "probability": "before.softmax(0).numpy()",
        }
    lines = [layer, target(facts), scores_without(last=last)]
    lines.append(_CHANGES.format(count="out_features" if last else "out_channels"))
    return in_order(*lines), {
        "logit_change": "np.array(logit_change)",
        "probability_change": "np.array(probability_change)",
        "logit": "before[TARGET].item()",
        "probability": "before.softmax(0)[TARGET].item()",
    }


_CHANGES = """\
logit_change, probability_change = [], []
layer = model.get_submodule(LAYER)
for channel in range(layer.{count}):  # a pass for each
    after = scores_without(layer, channel)
    logit_change.append((after - before)[TARGET].item())
    probability_change.append((after.softmax(0) - before.softmax(0))[TARGET].item())"""


_CLASS_CHANGES = "after = scores_without(model.get_submodule(LAYER), CHANNEL)"


LENS = Lens(
    slug="channels-that-matter",
    title=mark("Channels that matter"),
    question=mark("Which channels does a class need?"),
    sentence=mark(
        "Which single channel of a layer a class needs most: each is switched off by itself."
    ),
    group=WHAT_IF,
    of_channel=ChannelQuestion(mark("Which class needs it?"), {"of": _CLASSES}),
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="conv or linear"),
        OneOf(name="of", label=mark("Of"), choices=(_CHANNELS, _CLASSES)),
        ClassChoice(matters_for=("of", (_CHANNELS,))),
        ChannelChoice(matters_for=("of", (_CLASSES,))),
    ),
)
