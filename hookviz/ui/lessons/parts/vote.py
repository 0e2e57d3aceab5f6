"""The vote of the last channels for a class as bars, and the softmax of the scores."""

from functools import partial
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.panels import ChartPanel
from hookviz.explaining.class_vote import ClassVote
from hookviz.language.naming import listed_label
from hookviz.language.saying import say
from hookviz.lessons.part import Options, Scene
from hookviz.lessons.parts.vote import chances, class_of, label, ranked, scores_of, vote_of
from hookviz.lessons.photograph import photograph
from hookviz.ui.components.chart import chart
from hookviz.ui.components.map import show_map
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import pick, picked, remember_link
from hookviz.ui.state import Cell
from hookviz.wording import number, percent

_MOST_BARS = 14  # channels that have a bar of their own
_MOST_CLASSES = 6
_WIDTHS = (4, 4, 5)  # of a channel's map, of that on the image, and of its numbers


def show(scene: Scene, options: Options, key: str) -> None:
    """The vote, or the scores and the softmax; the latter too where there is no such vote."""
    scores = scores_of(scene)
    if options["shown"] == "softmax":
        _show_softmax(scene, scores)
        return
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
        _show_softmax(scene, scores)
        return
    target = _pick_class(scene, options, scores, key)
    parts = vote.contributions(target).numpy().astype(np.float64)
    own = np.argsort(-np.abs(parts), kind="stable")[:_MOST_BARS]
    own = own[np.argsort(-parts[own], kind="stable")]
    channel = picked(key, "channel", int(parts.argmax()))
    channel = min(channel, len(parts) - 1)
    remember_link(key, {"layer": vote.layer, "channel": str(channel)})
    _show_bars(vote, target, own, key)
    _show_sum(vote, target, own)
    _show_channel(scene, vote, target, channel, key)


def _pick_class(scene: Scene, options: Options, scores: NDArray[np.float32], key: str) -> int:
    start, order = class_of(scene, options["target"], scores), ranked(scores)
    chosen = st.selectbox(
        say("Class"),
        order,
        order.index(start),
        format_func=lambda number: listed_label(number, scene.model.categories),
        key=f"{key}-class",
    )
    return start if chosen is None else chosen


def _show_bars(vote: ClassVote, target: int, own: NDArray[np.intp], key: str) -> None:
    """A bar for each of the channels that count most, for all others together, and the bias."""
    parts = vote.contributions(target).numpy().astype(np.float64)
    others = parts.sum() - parts[own].sum()
    heights = np.array([*parts[own], others, float(vote.bias[target])])
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


def _show_sum(vote: ClassVote, target: int, own: NDArray[np.intp]) -> None:
    parts = vote.contributions(target).numpy().astype(np.float64)
    st.html(
        '<p class="hv-came-from">'
        + escape(
            say(
                "{shown_sum} from these channels, {other_sum} from all others, {bias} from the "
                "bias: the score is {score}.",
                shown_sum=number(parts[own].sum()),
                other_sum=number(parts.sum() - parts[own].sum()),
                bias=number(float(vote.bias[target])),
                score=number(float(vote.scores[target])),
            )
        )
        + "</p>"
    )


def _show_channel(scene: Scene, vote: ClassVote, target: int, channel: int, key: str) -> None:
    """The picked channel: its map, where that lies on the image, and its part of the sum."""
    maps = vote.maps.numpy()
    values = maps[channel]
    grid = grid_of(values[None])
    rows, columns = values.shape
    cell: Cell = picked(key, "cell", divmod(int(values.argmax()), columns))
    cell = min(cell[0], rows - 1), min(cell[1], columns - 1)
    left, middle, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.caption(say("Channel {channel}", channel=channel))
        show_map(grid, 0, values, cell, partial(pick, key, "cell"), key=f"{key}-map")
    with middle:
        st.caption(say("On the image"))
        st.image(
            photograph(scene, grid.channel_pixels(0)),
            width="stretch",
            output_format="JPEG",
            alt=say("The map of channel {channel} laid over the image.", channel=channel),
        )
    with right:
        mean, weight = float(vote.means[channel]), float(vote.weights[target, channel])
        rows_of = {
            say("mean of the map"): number(mean),
            say("weight for {kind}", kind=label(scene, target)): number(weight),
            say("mean × weight"): number(mean * weight),
        }
        cells = "".join(
            f"<span>{escape(name)}</span><b>{value}</b>" for name, value in rows_of.items()
        )
        st.html(f'<div class="hv-numbers">{cells}</div>')


def _show_softmax(scene: Scene, scores: NDArray[np.float32]) -> None:
    """The highest scores, and the chances that the softmax makes of them."""
    shares = chances(scores)
    heads = (say("class"), say("score"), say("probability"))
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    rows = "".join(
        f"<tr><th>{escape(label(scene, each))}</th><td>{number(float(scores[each]))}</td>"
        f'<td>{escape(percent(shares[each]))}</td><td class="track">'
        f'<span class="bar" style="width:{shares[each]:.2%}"></span></td></tr>'
        for each in ranked(scores)[:_MOST_CLASSES]
    )
    st.html(f'<table class="hv-softmax"><tr>{head}<td></td></tr>{rows}</table>')
