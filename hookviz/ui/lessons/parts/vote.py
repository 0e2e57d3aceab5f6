"""Draw the last channels' vote for a class as bars, and the softmax of the scores."""

from collections.abc import Mapping
from functools import partial
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.panels import ChartPanel
from hookviz.explaining.scores.class_vote import ClassVote
from hookviz.language.naming import listed_label
from hookviz.language.saying import say
from hookviz.lessons.maps import strongest_first
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.vote import (
    CHANNEL,
    DRAGGED,
    MOST_CLASSES,
    PICKED,
    class_of,
    last_maps,
    moved_scores,
    scores_of,
    vote_of,
)
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores
from hookviz.types import Pixels
from hookviz.ui.components.chart import chart
from hookviz.ui.components.class_scores import show_class_scores
from hookviz.ui.components.map import show_map
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import (
    choose,
    pick,
    picked,
    picked_cell,
    remember_link,
    remember_shown,
)
from hookviz.wording import number

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
    remember_shown(key, {PICKED: str(target)}, {PICKED: str(start)})
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
    first = scores.first(MOST_CLASSES)
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
        show_class_scores(scores, MOST_CLASSES, kept, take, key=f"{key}-softmax")
