"""Draw a channel that correlates with the class beside the one that the class needs."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.lessons.chances import chance
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.no_cause import class_channels, verdict
from hookviz.lessons.scores import Scores, own_scores, scores_without
from hookviz.ui.components.chart import chart
from hookviz.ui.lessons.class_bars import show_before_and_after
from hookviz.ui.lessons.picks import choose
from hookviz.ui.state import plain

_FOLLOWS, _NEEDED = "follows", "needed"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choice of both channels, how it correlates, and what its silence changes."""
    both = class_channels(scene, options)
    before: Scores = own_scores(scene)
    names = {
        _FOLLOWS: say("Channel {channel}: goes along", channel=both.follower),
        _NEEDED: say("Channel {channel}: changes most", channel=both.needed),
    }
    chosen = choose(
        st.segmented_control,
        say("Which channel"),
        list(names),
        key,
        "channel",
        first=_FOLLOWS,
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    channel = both.needed if chosen == _NEEDED else both.follower
    of_versions = both.versions
    panel = ChartPanel(
        say("The class and the channel over versions of the image"),
        tuple(str(index + 1) for index in range(len(of_versions.scores))),
        {
            say("score of {label}", label=before.name(before.best)): _spread(of_versions.scores),
            say("mean of channel {channel}", channel=channel): _spread(
                of_versions.means[:, channel]
            ),
        },
        kind="lines",
        unit=say("from its lowest to its highest"),
    )
    chart(panel, f"{key} chart", None)
    st.caption(
        plain(
            say(
                "Along the bottom: versions of the image. The correlation is {correlation:.2f}.",
                correlation=float(of_versions.correlations[channel]),
            )
        )
    )
    show_before_and_after(before, scores_without(scene, both.layer, [channel]), written=chance)
    st.markdown(f"**{plain(verdict(both, channel))}**")


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stretch numbers to 0, the lowest, … 1, the highest."""
    low, high = values.min(), values.max()
    spread: NDArray[np.float64] = (values - low) / ((high - low) or 1.0)
    return spread
