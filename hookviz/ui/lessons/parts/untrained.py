"""Draw a layer's channels beside those with random weights, and what chance gives among so many."""

from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.untrained import (
    TRIED,
    TrainedAndUntrained,
    best_of,
    counts_to_try,
    trained_and_untrained,
)
from hookviz.ui.components.chart import chart
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.picks import choose, pick_channel, picked_channel, remember_shown
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_GRID_HEIGHT = 190  # pixels
_BINS = 10  # of the correlations from 0 to 1
_BEST, _ALL = "best", "all"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw both grids, the picked channel beside the random one most like it, and the chart."""
    with turn(say("The same network with random weights"), "lesson", model=scene.model.name):
        pair = trained_and_untrained(scene, options)
    # Random weights make values of another size, so each side has a scale of its own.
    ours, theirs = (
        make_grid(maps, scale="symmetric", colormap=diverging(), aspect=2)
        for maps in (pair.trained, pair.untrained)
    )
    channels = len(pair.correlations)
    tried = choose(
        st.select_slider,
        say("Random channels that are looked through for the most alike"),
        counts_to_try(channels),
        key,
        TRIED,
        first=channels,
    )
    remember_shown(key, {TRIED: str(tried)}, {TRIED: str(channels)})
    channel = picked_channel(key, channels, pair.most_alike)
    partner = int(pair.partners_of(tried)[channel])
    with st.container(key="hv-two-halves"):  # one below the other on a phone
        left, right = st.columns(2)  # the grid that is clicked stands below what a click changes
    with left:
        own, random = st.columns(2, gap="small", wrap=False)
        with own:
            alt = say("The map of channel {channel}", channel=channel)
            st.image(ours.channel_png(channel, 4), width="stretch", alt=alt)
            st.caption(plain(say("Channel {channel}, trained", channel=channel)))
        with random:
            alt = say("The untrained map of channel {channel}", channel=partner)
            st.image(theirs.channel_png(partner, 4), width="stretch", alt=alt)
            st.caption(
                plain(
                    say(
                        "Random channel {channel}, most alike of the first {tried}: "
                        "correlation ±{correlation:.2f}",
                        channel=partner,
                        tried=tried,
                        correlation=float(pair.correlations[channel, partner]),
                    )
                )
            )
        st.markdown("**" + say("Trained") + "**")
        said = say("Trained channels of {layer}. A click compares one.", layer=pair.layer.name)
        mosaic(ours, said, partial(pick_channel, key), key=f"{key} trained", height=_GRID_HEIGHT)
    with right:
        _show_chart(pair, key)
        st.markdown("**" + say("Random weights") + "**")
        said = say("Channels of {layer} with random weights.", layer=pair.layer.name)
        mosaic(theirs, said, _nothing, key=f"{key} untrained", height=_GRID_HEIGHT)


def _show_chart(pair: TrainedAndUntrained, key: str) -> None:
    """Draw how the best grows with the number looked through, or how all correlations lie."""
    names = {_BEST: say("the best of so many"), _ALL: say("all of them")}
    chosen = choose(
        st.segmented_control,
        say("Correlations"),
        list(names),
        key,
        "chart",
        first=_BEST,
        format_func=names.__getitem__,
        required=True,
    )
    series = {say("trained and random"): pair.correlations, say("random and random"): pair.chance}
    if chosen == _BEST:
        counts = counts_to_try(pair.chance.shape[1])
        panel = ChartPanel(
            say("The most alike of so many random channels"),
            tuple(map(str, counts)),
            {
                name: np.array([best_of(values, count) for count in counts])
                for name, values in series.items()
            },
            kind="lines",
            unit=say("correlation of the best, on average"),
            places=say("channels looked through"),
        )
    else:
        panel = ChartPanel(
            say("All correlations"),
            tuple(f"{low / _BINS:.1f}" for low in range(_BINS)),
            {name: _shares(values) for name, values in series.items()},
            unit=say("percent of all pairs"),
            places=say("correlation, from"),
        )
    chart(panel, f"{key} drawn", None)
    st.caption(plain(say("Along the bottom: {places}.", places=panel.places)))


def _shares(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many in a hundred lie in each bin from 0 to 1."""
    counts, _ = np.histogram(np.minimum(correlations, 1), _BINS, (0, 1))
    shares: NDArray[np.float64] = 100 * counts / correlations.size
    return shares


def _nothing(_channel: int, _cell: tuple[int, int] | None) -> None:
    """Pick nothing: a click here leads nowhere."""
