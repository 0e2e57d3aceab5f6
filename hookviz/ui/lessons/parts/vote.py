"""Follow the last maps to a class: a number for each channel, their weighted sum, the softmax.

The page draws the channels' vote as bars, or the highest scores as sliders. The browser computes
the softmax over all classes while a slider is dragged; the server hears the scores at the end.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.drawing.panels import ChartPanel
from hookviz.errors import ModelError
from hookviz.explaining.scores.class_vote import ClassVote, class_vote
from hookviz.language.naming import listed_label
from hookviz.language.saying import say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import Map, maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores, chance, named_scores, ratio
from hookviz.types import Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.components.panels import chart
from hookviz.ui.components.pictures import mosaic, show_map
from hookviz.ui.lessons.figures import grid_of
from hookviz.ui.lessons.picks import (
    choose,
    pick,
    picked,
    picked_cell,
    remember_link,
    remember_shown,
)
from hookviz.wording import number

_LIKELIEST = "likeliest"
"""What a lesson writes for the class with the highest score."""
_PICKED = "picked"
"""Among the options the number of the class that a learner picked; a lesson's file has none."""
CHANNEL = "channel"
"""Among the options the channel that a learner picked; a lesson's file has none."""
DRAGGED = "dragged"
"""Among the options the scores that a learner dragged, as `moved_scores` reads them."""

_MOST_CLASSES = 6
"""Classes whose scores are shown."""
_FURTHEST = 1000.0
"""What a score can be dragged to, at most."""

_SHOWN = ("means", "vote", "scores", "softmax")
"""What is shown: the last maps with their means, their vote, the classes' scores, the softmax."""

_OF_VOTE = (
    *("layer", "channels", "bias", "top_channel", "top_mean", "top_weight", "top_part"),
    *("for", "against"),
)
_MOVE = re.compile(r"([0-9]{1,6}):(-?[0-9]{1,4}(?:\.[0-9]{1,2})?)")


def scores_of(scene: LessonScene) -> Scores:
    """Return the class scores of the scene's input.

    Raises:
        ModelError: the network puts out none.
    """
    first = [layer.name for layer in scene.trace.layers[:1]]
    capture = engine.capture(scene.model, scene.model_input, first, cache=scene.cache)
    if capture.answer is None:
        raise ModelError(capture.unanswered)
    return named_scores(scene.model, capture.answer.scores, capture.answer.reading)


def vote_of(scene: LessonScene) -> ClassVote | None:
    """Return how the last channels vote; None where the network ends in another way."""
    return class_vote(scene.model, scene.model_input, cache=scene.cache)


def class_of(scores: Scores, name: str) -> int:
    """Return the class of that name; the likeliest where the network has none of that name."""
    known = name != _LIKELIEST and name in scores.names[: len(scores.scores)]
    return scores.names.index(name) if known else scores.best


def last_maps(scene: LessonScene) -> tuple[str, Map]:
    """Return the last maps ``(C, H, W)`` and their layer: those whose means vote, where they do."""
    vote = vote_of(scene)
    if vote is not None:
        return vote.layer, vote.maps.numpy()
    layer = layer_of(scene, "last").name
    return layer, maps_of(scene, layer)


def moved_scores(text: str, classes: int) -> dict[int, float]:
    """Read the scores that were dragged, such as ``"3:-1.25,7:4.5"``, by the class's number.

    What is no such pair, or of no class, is left out: it comes from a link.
    """
    moves = (_MOVE.fullmatch(pair) for pair in text.split(","))
    found = {int(move[1]): float(move[2]) for move in moves if move}
    return {
        target: max(-_FURTHEST, min(_FURTHEST, score))
        for target, score in found.items()
        if target < classes
    }


def _compared(scores: Scores) -> str:
    """Tell the probabilities of the two likeliest classes, and their ratio if what is shown has it.

    That is a sentence, in the language that is spoken.
    """
    first, second = scores.first(2)[0], scores.first(2)[-1]
    larger, smaller = float(scores.chances[first]), float(scores.chances[second])
    told = {
        "class_name": scores.name(first),
        "larger": chance(larger),
        "other": scores.name(second),
        "smaller": chance(smaller),
    }
    times = ratio(larger, smaller)
    if not times:
        return say(
            "The probability of {class_name} is {larger}, that of {other} {smaller}.", **told
        )
    return say(
        "The probability of {class_name} is {larger}, that of {other} {smaller}: about {factor} "
        "times less.",
        factor=times,
        **told,
    )


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    own = scores_of(scene)
    scores = own.moved(moved_scores(options.get(DRAGGED, ""), len(own.scores)))
    values, chances = scores.scores, scores.chances
    target, second = class_of(own, options["target"]), scores.first(2)[-1]
    target = min(int(options.get(_PICKED, target)), len(values) - 1)
    lead = float(values[scores.best] - values[second])
    facts: dict[str, Fact] = {
        "classes": len(values),
        "class": scores.name(target),
        "likeliest": scores.name(scores.best),
        "likeliest_chance": chance(float(chances[scores.best])),
        "score": float(values[target]),
        "chance": float(chances[target]),
        "second": scores.name(second),
        "second_score": float(values[second]),
        "second_chance": float(chances[second]),
        "lead": lead,
        "compared": _compared(scores),
    }
    facts |= _of_channel(scene, options)
    vote = vote_of(scene)
    facts |= dict.fromkeys(_OF_VOTE, "–")  # where there is none, as the part says
    if vote is not None:
        parts = vote.contributions(target).numpy()
        top = int(parts.argmax())
        facts |= {
            "layer": vote.layer,
            "channels": len(parts),
            "bias": float(vote.bias[target]),
            "top_channel": top,
            "top_mean": number(float(vote.means[top])),
            "top_weight": number(float(vote.weights[target, top])),
            "top_part": number(float(parts[top])),
            "for": int((parts > 0).sum()),
            "against": int((parts < 0).sum()),
        }
    return facts


def _of_channel(scene: LessonScene, options: Options) -> dict[str, Fact]:
    """Return the facts of one of the last maps: of the strongest before any was picked."""
    layer, maps = last_maps(scene)
    channel = min(int(options.get(CHANNEL, strongest_first(maps, 1)[0])), len(maps) - 1)
    values = maps[channel]
    return {
        "last_layer": layer,
        "last_channels": len(maps),
        "cells": values.size,
        "map_channel": channel,
        "map_mean": number(float(values.mean())),
        "map_highest": number(float(values.max())),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    vote = vote_of(scene)
    if vote is None:
        return {}
    target = class_of(scores_of(scene), options["target"])
    return {"layer": vote.layer, "channel": str(int(vote.contributions(target).argmax()))}


PART = Part(
    name="vote",
    sentence="The last maps and the mean of each; what each adds to the score of a class, its mean "
    "times its weight; or the scores of the classes, which can be dragged, and what the softmax "
    "makes of them.",
    options=(
        Option("target", _LIKELIEST, "The class at first, by its name."),
        Option(
            "shown",
            "vote",
            "means for the maps, vote for the channels, scores or softmax for the classes.",
            choice(_SHOWN),
        ),
    ),
    facts=_facts,
    link=_link,
)


_STEPS = 200  # of a slider from end to end, about
_LEAST_ROOM = 4.0  # that a slider has beyond the highest and the lowest score


def _show_class_scores(
    scores: Scores,
    count: int,
    moved: Mapping[int, float],
    on_move: Callable[[Mapping[int, float]], None],
    *,
    key: str,
) -> None:
    """Show the highest scores to be dragged.

    Args:
        scores: the network's own.
        count: how many classes have a slider.
        moved: scores that were dragged, by the class.
        on_move: gets all of them that differ from the network's own, when one was let go.
        key: of the component in Streamlit's state.
    """
    first = scores.first(count)
    own = [float(scores.scores[target]) for target in first]
    low, high, step = slider_ends(own)
    others = np.delete(scores.scores, first)

    def take(sent: object) -> None:
        match sent:
            case [*values] if len(values) == len(first):
                numbers = [float(each) for each in values if isinstance(each, int | float)]
                if len(numbers) == len(first):
                    pairs = zip(first, numbers, own, strict=True)
                    on_move({at: new for at, new, old in pairs if new != old})

    data = {
        "names": [scores.name(target) for target in first],
        "own": own,
        "scores": [moved.get(target, score) for target, score in zip(first, own, strict=True)],
        "others": None if not len(others) else float(np.logaddexp.reduce(others)),
        "more": len(others),
        "ends": [low, high, step],
        "words": {
            "label": say("The scores of the likeliest classes, and their probabilities"),
            "score": say("Score of {name}"),
            "heads": [say("class"), say("score"), say("probability")],
            "all": say("All scores together"),
            "others": say("all {count} others", count=f"{len(others):,}"),
            "reset": say("As the network has it"),
            "share": say("{share} %"),
            "less": say("< {share} %"),
            "more": say("> {share} %"),
        },
    }
    mount("class_scores", key, data, moved=take)


def slider_ends(scores: list[float]) -> tuple[float, float, float]:
    """Return the lowest and the highest value of the sliders, and their step.

    There is room to bring the last of the classes to the front, and the first to the end.
    """
    lowest, highest = min(scores), max(scores)
    room = max(_LEAST_ROOM, highest - lowest)
    step = max(0.05, round((highest - lowest + 2 * room) / _STEPS, 2))
    low, high = math.floor(lowest - room), math.ceil(highest + room)
    return float(low), float(high), step


_MOST_BARS = 14  # channels that have a bar of their own
_MOST_MAPS = 12
_MAPS_HEIGHT = 170  # pixels of their grid
_BESIDE = (2, 3)  # of the image, and of a chart beside it
_PHOTOGRAPH = (1, 4)
_WIDTHS = (4, 4, 5)  # of a channel's map, of that on the image, and of its numbers


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the last maps, their vote, or the scores: these too where there is no such vote."""
    scores, shown = scores_of(scene), options["shown"]
    if shown == "means":
        _show_means(scene, key)
    elif shown == "scores":
        _show_scores(scene, scores, key)
    elif shown == "softmax":
        _show_softmax(scene, scores, key)
    else:
        _show_vote(scene, scores, options, key)


def _show_vote(scene: LessonScene, scores: Scores, options: Options, key: str) -> None:
    """Draw what each channel adds to a class's score; the scores alone where it is no such sum."""
    vote = vote_of(scene)
    if vote is None:
        st.info(
            say(
                "{model} ends in another way than with the mean of each channel and one weight "
                "for each class, so its scores are no such sum. These are its scores.",
                model=scene.model.title,
            ),
            icon=":material/info:",
        )
        _show_scores(scene, scores, key)
        return
    target, start = _pick_class(scores, options, key), class_of(scores, options["target"])
    remember_shown(key, {_PICKED: str(target)}, {_PICKED: str(start)})
    parts = vote.contributions(target).numpy().astype(np.float64)
    own = np.argsort(-np.abs(parts), kind="stable")[:_MOST_BARS]
    own = own[np.argsort(-parts[own], kind="stable")]
    others, bias = parts.sum() - parts[own].sum(), float(vote.bias[target])
    channel = picked(key, "channel", int(parts.argmax()))
    channel = min(channel, len(parts) - 1)
    remember_link(key, {"layer": vote.layer, "channel": str(channel)})
    _show_bars(parts, own, others, bias, key)
    _show_sum(parts[own].sum(), others, bias, float(vote.scores[target]))
    _show_channel(scene, vote, target, channel, key)


def _show_means(scene: LessonScene, key: str) -> None:
    """Show the strongest of the last maps, and how the picked one becomes one number."""
    layer, maps = last_maps(scene)
    strongest = strongest_first(maps, _MOST_MAPS)
    channel = min(picked(key, "channel", strongest[0]), len(maps) - 1)
    remember_shown(key, {CHANNEL: str(channel)}, {CHANNEL: str(strongest[0])})
    remember_link(key, {"layer": layer, "channel": str(channel)})
    mosaic(
        grid_of(maps, layer, top=_MOST_MAPS),
        say("The strongest channels of layer {layer}.", layer=layer),
        lambda number, _cell: pick(key, "channel", number),
        key=f"{key}-grid",
        height=_MAPS_HEIGHT,
        chosen=channel,
    )
    values = maps[channel]
    grid = grid_of(values[None])
    left, middle, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.caption(say("Channel {channel}", channel=channel))
        cell = picked_cell(key, values)
        show_map(grid, 0, values, cell, partial(pick, key, "cell"), key=f"{key}-map")
    with middle:
        _show_on_image(scene, grid.channel_pixels(0), channel)
    with right:
        words = say("The mean of its {count} cells", count=values.size)
        st.html(
            f'<p class="hv-one-number">{escape(words)}<b>{number(float(values.mean()))}</b></p>'
        )


def _show_on_image(scene: LessonScene, colours: Pixels, channel: int) -> None:
    st.caption(say("On the image"))
    st.image(
        photograph(scene, colours),
        width="stretch",
        output_format="JPEG",
        alt=say("The map of channel {channel} laid over the image.", channel=channel),
    )


def _pick_class(scores: Scores, options: Options, key: str) -> int:
    start, order = class_of(scores, options["target"]), scores.first(len(scores.scores))
    return choose(
        st.selectbox,
        say("Class"),
        order,
        key,
        "class",
        first=start,
        format_func=lambda number: listed_label(number, scores.names),
    )


def _show_bars(
    parts: NDArray[np.float64], own: NDArray[np.intp], others: float, bias: float, key: str
) -> None:
    """Draw a bar for each channel that counts most, for all others together, and the bias."""
    heights = np.array([*parts[own], others, bias])
    panel = ChartPanel(
        title=say("What each channel adds to the score"),
        labels=(*map(str, own.tolist()), say("others"), say("bias")),
        series={say("mean × weight"): heights},
        unit=say("mean × weight"),
    )

    def take(position: int) -> None:
        if position < len(own):
            pick(key, "channel", int(own[position]))

    st.caption(say("What each channel adds to the score: its mean times its weight"))
    chart(panel, f"{key}-bars", take)


def _show_sum(own: float, others: float, bias: float, score: float) -> None:
    st.html(
        '<p class="hv-came-from">'
        + escape(
            say(
                "{shown_sum} from these channels, {other_sum} from all others, {bias} from the "
                "bias: the score is {score}.",
                shown_sum=number(own),
                other_sum=number(others),
                bias=number(bias),
                score=number(score),
            )
        )
        + "</p>"
    )


def _show_channel(scene: LessonScene, vote: ClassVote, target: int, channel: int, key: str) -> None:
    """Show the picked channel: its map, where that lies on the image, and its part of the sum."""
    maps = vote.maps.numpy()
    values = maps[channel]
    grid = grid_of(values[None])
    cell = picked_cell(key, values)
    left, middle, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.caption(say("Channel {channel}", channel=channel))
        show_map(grid, 0, values, cell, partial(pick, key, "cell"), key=f"{key}-map")
    with middle:
        _show_on_image(scene, grid.channel_pixels(0), channel)
    with right:
        mean, weight = float(vote.means[channel]), float(vote.weights[target, channel])
        rows_of = {
            say("mean of the map"): number(mean),
            say("weight for {kind}", kind=scene.model.label(target)): number(weight),
            say("mean × weight"): number(mean * weight),
        }
        cells = "".join(
            f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows_of.items()
        )
        st.html(f'<div class="hv-numbers">{cells}</div>')


def _show_scores(scene: LessonScene, scores: Scores, key: str) -> None:
    """Show the image and the highest scores of its classes as bars, before any softmax."""
    first = scores.first(_MOST_CLASSES)
    panel = ChartPanel(
        title=say("The highest scores"),
        labels=tuple(scores.name(target) for target in first),
        series={say("score"): scores.scores[first]},
        unit=say("score"),
    )
    left, right = st.columns(_BESIDE, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        st.caption(say("The highest scores"))
        chart(panel, f"{key}-scores", None)


def _show_softmax(scene: LessonScene, scores: Scores, key: str) -> None:
    """Show the highest scores to be dragged, and the probabilities that follow at once."""
    kept = moved_scores(picked(key, "scores", ""), len(scores.scores))

    def take(moves: Mapping[int, float]) -> None:
        text = ",".join(f"{target}:{score:.2f}" for target, score in moves.items())
        pick(key, "scores", text)

    dragged = ",".join(f"{target}:{score:.2f}" for target, score in kept.items())
    remember_shown(key, {DRAGGED: dragged}, {DRAGGED: ""})
    left, right = st.columns(_PHOTOGRAPH, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        _show_class_scores(scores, _MOST_CLASSES, kept, take, key=f"{key}-softmax")
