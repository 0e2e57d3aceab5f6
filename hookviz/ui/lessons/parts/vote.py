"""Follow the last maps to a class: each channel's mean, their weighted sum, the softmax.

The browser computes the softmax over all classes while a score's slider is dragged, and sends the
scores at the end.
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
from hookviz.explaining.scores.scoring import ClassVote, class_vote
from hookviz.language.naming import listed_label
from hookviz.language.saying import say
from hookviz.lessons.layers import Map, layer_of, maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores, chance, named_scores, ratio
from hookviz.ui.components.files import mount
from hookviz.ui.components.panels import chart
from hookviz.ui.components.pictures import mosaic, show_map
from hookviz.ui.lessons.figures import grid_of, show_on_photograph
from hookviz.ui.lessons.picks import (
    choose,
    pick,
    picked,
    picked_cell,
    remember_link,
    remember_options,
)
from hookviz.wording import number

_LIKELIEST = "likeliest"
"""Word of a lesson's file for the class with the highest score."""
_PICKED, CHANNEL, DRAGGED = "picked", "channel", "dragged"
"""Options that the page adds: the picked class and channel, and scores for `moved_scores`."""

_MOST_CLASSES = 6
_FURTHEST = 1000.0
"""Largest magnitude of a dragged score."""

_VIEWS = ("means", "vote", "scores", "softmax")

_OF_VOTE = (
    *("layer", "channels", "bias", "top_channel", "top_mean", "top_weight", "top_part"),
    *("for", "against"),
)
_MOVE = re.compile(r"([0-9]{1,6}):(-?[0-9]{1,4}(?:\.[0-9]{1,2})?)")


def scores_of(scene: LessonScene) -> Scores:
    """Return the class scores of the scene's input.

    Raises:
        ModelError: the network has none.
    """
    first = [layer.name for layer in scene.trace.layers[:1]]
    capture = engine.capture(scene.model, scene.model_input, first, cache=scene.cache)
    if capture.answer is None:
        raise ModelError(capture.unanswered)
    return named_scores(scene.model, capture.answer.scores, capture.answer.reading)


def vote_of(scene: LessonScene) -> ClassVote | None:
    """Return the vote of the last channels; None if the network ends in another way."""
    return class_vote(scene.model, scene.model_input, cache=scene.cache)


def class_of(scores: Scores, name: str) -> int:
    """Return the class of a name, or the likeliest if the network has no such class."""
    known = name != _LIKELIEST and name in scores.names[: len(scores.scores)]
    return scores.names.index(name) if known else scores.best


def last_maps(scene: LessonScene) -> tuple[str, Map]:
    """Return the last maps ``(C, H, W)`` and their layer; voting ones, if any."""
    vote = vote_of(scene)
    if vote is not None:
        return vote.layer, vote.maps.numpy()
    layer = layer_of(scene, "last").name
    return layer, maps_of(scene, layer)


def moved_scores(text: str, classes: int) -> dict[int, float]:
    """Read dragged scores, such as ``"3:-1.25,7:4.5"``, by class; malformed pairs are left out."""
    moves = (_MOVE.fullmatch(pair) for pair in text.split(","))
    return {
        int(move[1]): max(-_FURTHEST, min(_FURTHEST, float(move[2])))
        for move in moves
        if move and int(move[1]) < classes
    }


def _moves_text(moves: Mapping[int, float]) -> str:
    """Write dragged scores for `moved_scores`."""
    return ",".join(f"{target}:{score:.2f}" for target, score in moves.items())


def _compared(scores: Scores) -> str:
    """Compare the probabilities of the two likeliest classes in a sentence, with their ratio."""
    first, second = scores.first(2)[0], scores.first(2)[-1]
    larger, smaller = float(scores.chances[first]), float(scores.chances[second])
    facts = {
        "class_name": scores.name(first),
        "larger": chance(larger),
        "other": scores.name(second),
        "smaller": chance(smaller),
    }
    times = ratio(larger, smaller)
    if not times:
        return say(
            "The probability of {class_name} is {larger}, that of {other} {smaller}.", **facts
        )
    return say(
        "The probability of {class_name} is {larger}, that of {other} {smaller}: about {factor} "
        "times less.",
        factor=times,
        **facts,
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
    facts |= dict.fromkeys(_OF_VOTE, "–")  # without a vote
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
    """Return the facts of the picked one of the last maps, or of the strongest."""
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
            choice(_VIEWS),
        ),
    ),
    facts=_facts,
    link=_link,
    fits=lambda scene: vote_of(scene) is not None,
)


_STEPS = 200  # of a slider, about
_LEAST_ROOM = 4.0  # of a slider beyond the highest and the lowest score


def _show_class_scores(
    scores: Scores,
    count: int,
    moved: Mapping[int, float],
    on_move: Callable[[Mapping[int, float]], None],
    *,
    key: str,
) -> None:
    """Show the highest scores as sliders.

    Args:
        scores: the network's own.
        count: number of sliders.
        moved: dragged scores, by class.
        on_move: gets all dragged scores when one slider is released.
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

    The last class can be brought to the front, and the first to the end.
    """
    lowest, highest = min(scores), max(scores)
    room = max(_LEAST_ROOM, highest - lowest)
    step = max(0.05, round((highest - lowest + 2 * room) / _STEPS, 2))
    low, high = math.floor(lowest - room), math.ceil(highest + room)
    return float(low), float(high), step


_MOST_BARS = 14  # channels with a bar of their own
_MOST_MAPS = 12
_MAPS_PX = 170  # height of their grid
_BESIDE_CHART = (2, 3)  # widths of the image and a chart
_BESIDE_SLIDERS = (1, 4)  # widths of the image and the sliders
_WIDTHS = (4, 4, 5)  # of a channel's map, the map on the image, and its numbers


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the last maps, their vote or the scores; the scores too if there is no vote."""
    scores, view = scores_of(scene), options["shown"]
    if view == "means":
        _show_means(scene, key)
    elif view == "scores":
        _show_scores(scene, scores, key)
    elif view == "softmax":
        _show_softmax(scene, scores, key)
    else:
        _show_vote(scene, scores, options, key)


def _show_vote(scene: LessonScene, scores: Scores, options: Options, key: str) -> None:
    """Draw each channel's part of a class's score, or the scores if they are no such sum."""
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
    remember_options(key, {_PICKED: str(target)}, {_PICKED: str(start)})
    parts = vote.contributions(target).numpy().astype(np.float64)
    own = np.argsort(-np.abs(parts), kind="stable")[:_MOST_BARS]
    own = own[np.argsort(-parts[own], kind="stable")]
    others, bias = parts.sum() - parts[own].sum(), float(vote.bias[target])
    channel = min(picked(key, "channel", int(parts.argmax())), len(parts) - 1)
    remember_link(key, {"layer": vote.layer, "channel": str(channel)})
    _show_bars(parts, own, others, bias, key)
    text = say(
        "{shown_sum} from these channels, {other_sum} from all others, {bias} from the "
        "bias: the score is {score}.",
        shown_sum=number(parts[own].sum()),
        other_sum=number(others),
        bias=number(bias),
        score=number(float(vote.scores[target])),
    )
    st.html(f'<p class="hv-came-from">{escape(text)}</p>')
    mean, weight = float(vote.means[channel]), float(vote.weights[target, channel])
    rows = {
        say("mean of the map"): number(mean),
        say("weight for {kind}", kind=scene.model.label(target)): number(weight),
        say("mean × weight"): number(mean * weight),
    }
    cells = "".join(f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows.items())
    values = vote.maps.numpy()[channel]
    _show_channel(scene, values, channel, f'<div class="hv-numbers">{cells}</div>', key)


def _show_means(scene: LessonScene, key: str) -> None:
    """Show the strongest of the last maps, and the mean of the picked one."""
    layer, maps = last_maps(scene)
    strongest = strongest_first(maps, _MOST_MAPS)
    channel = min(picked(key, "channel", strongest[0]), len(maps) - 1)
    remember_options(key, {CHANNEL: str(channel)}, {CHANNEL: str(strongest[0])})
    remember_link(key, {"layer": layer, "channel": str(channel)})
    mosaic(
        grid_of(maps, layer, top=_MOST_MAPS),
        say("The strongest channels of layer {layer}.", layer=layer),
        lambda number, _cell: pick(key, "channel", number),
        key=f"{key}-grid",
        height=_MAPS_PX,
        chosen=channel,
    )
    values = maps[channel]
    words = escape(say("The mean of its {count} cells", count=values.size))
    mean = f'<p class="hv-one-number">{words}<b>{number(float(values.mean()))}</b></p>'
    _show_channel(scene, values, channel, mean, key)


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
    """Draw a bar for each channel of largest effect, for all others together, and the bias."""
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


def _show_channel(scene: LessonScene, values: Map, channel: int, html: str, key: str) -> None:
    """Show a channel's map, the map on the image, and its numbers as HTML."""
    grid = grid_of(values[None])
    cell = picked_cell(key, values)
    left, middle, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.caption(say("Channel {channel}", channel=channel))
        show_map(grid, 0, values, cell, partial(pick, key, "cell"), key=f"{key}-map")
    with middle:
        st.caption(say("On the image"))
        show_on_photograph(scene, grid, 0, channel)
    with right:
        st.html(html)


def _show_scores(scene: LessonScene, scores: Scores, key: str) -> None:
    """Show the image and the highest scores of its classes as bars, before any softmax."""
    first = scores.first(_MOST_CLASSES)
    panel = ChartPanel(
        title=say("The highest scores"),
        labels=tuple(scores.name(target) for target in first),
        series={say("score"): scores.scores[first]},
        unit=say("score"),
    )
    left, right = st.columns(_BESIDE_CHART, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        st.caption(say("The highest scores"))
        chart(panel, f"{key}-scores", None)


def _show_softmax(scene: LessonScene, scores: Scores, key: str) -> None:
    """Show the highest scores as sliders, with their probabilities."""
    moves = moved_scores(picked(key, "scores", ""), len(scores.scores))
    remember_options(key, {DRAGGED: _moves_text(moves)}, {DRAGGED: ""})
    left, right = st.columns(_BESIDE_SLIDERS, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        _show_class_scores(
            scores,
            _MOST_CLASSES,
            moves,
            lambda new: pick(key, "scores", _moves_text(new)),
            key=f"{key}-softmax",
        )
