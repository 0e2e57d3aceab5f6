"""Compare a layer's channels with those of the same network with random weights.

The best of many random channels is similar to a trained one by chance alone. The chart compares
that with the best of many random channels for a random one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.models.derived_models import untrained
from hookviz.types import Activation, LayerInfo
from hookviz.ui.components.panels import chart
from hookviz.ui.components.pictures import mosaic
from hookviz.ui.lessons.picks import (
    choose,
    choose_button,
    pick_channel,
    picked_channel,
    remember_options,
)
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_Correlations = NDArray[np.float64]

TRIED = "tried"
"""Option that the page adds: the number of random channels to choose from."""


@dataclass(frozen=True, eq=False, slots=True)
class TrainedAndUntrained:
    """A layer's maps with trained and with random weights, and their correlations.

    Attributes:
        layer: the layer.
        trained, untrained: its maps, ``(C, H, W)`` each.
        correlations: |Pearson's correlation| over the cells of each trained channel with each
            random one, ``(C, C)``; 0 where a map has one value everywhere.
        chance: the same of each random channel with each other random one, ``(C, C - 1)``.
    """

    layer: LayerInfo
    trained: Activation
    untrained: Activation
    correlations: _Correlations = field(repr=False)
    chance: _Correlations = field(repr=False)

    @property
    def partners(self) -> NDArray[np.int64]:
        """For each trained channel the random one with the most similar map, ``(C,)``."""
        return self.partners_of(len(self.correlations))

    def partners_of(self, tried: int) -> NDArray[np.int64]:
        """Return the most similar of the first `tried` random channels to each trained one."""
        partners: NDArray[np.int64] = self.correlations[:, :tried].argmax(1).astype(np.int64)
        return partners

    @property
    def alike(self) -> _Correlations:
        """Correlation of each trained channel with its partner, ``(C,)``."""
        best: _Correlations = self.correlations.max(1)
        return best

    @property
    def most_similar(self) -> int:
        """The trained channel with the most similar untrained one."""
        return int(self.alike.argmax())


def trained_and_untrained(scene: LessonScene, options: Options) -> TrainedAndUntrained:
    """Capture the layer's maps with the model's weights and with random ones, and correlate them.

    Raises:
        ModelError: the weights are random already, or can't be drawn again.
    """
    layer = layer_of(scene, options["layer"])
    nbytes = 8 * int(np.prod(layer.output_shape)) + 16 * layer.output_shape[0] ** 2
    return scene.cached(("untrained", layer.name), lambda: _compute(scene, layer), nbytes)


def best_of(correlations: _Correlations, tried: int) -> float:
    """Return the mean of the highest of `tried` numbers of a row, over all choices and rows.

    Of n numbers in order, the i-th is the highest of comb(i - 1, tried - 1) of the comb(n, tried)
    choices.

    Args:
        correlations: ``(rows, n)``.
        tried: number of choices in a row, 1 … n.
    """
    count = correlations.shape[1]
    choices = math.comb(count, tried)
    weights = [math.comb(below, tried - 1) / choices for below in range(count)]
    return float((np.sort(correlations, 1) @ weights).mean())


def _counts_to_try(channels: int) -> Sequence[int]:
    """Return the numbers of random channels to choose from: powers of two, and all.

    >>> _counts_to_try(48)
    (1, 2, 4, 8, 16, 32, 48)
    """
    powers = (2**power for power in range(channels.bit_length()))
    return (*(count for count in powers if count < channels), channels)


def _tried_of(options: Options, channels: int) -> int:
    """Return the options' number of random channels, or all."""
    return min(int(options.get(TRIED, channels)), channels)


def _compute(scene: LessonScene, layer: LayerInfo) -> TrainedAndUntrained:
    ours = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    blank = untrained(scene.model)
    theirs = capture(blank, scene.model_input, layer.name, logits=False)[layer.name]
    trained, random = _standard(ours), _standard(theirs)
    among = np.abs(random.T @ random)
    others = among[~np.eye(len(among), dtype=bool)].reshape(len(among), -1)
    return TrainedAndUntrained(layer, ours, theirs, np.abs(trained.T @ random), others)


def _standard(maps: Activation) -> NDArray[np.float64]:
    """Return a standardised column for each channel, of length 1; zeros for a constant one."""
    columns = maps.values.numpy().reshape(len(maps.values), -1).T.astype(np.float64)
    columns = columns - columns.mean(0)
    lengths = np.sqrt(np.square(columns).sum(0))
    sizes = np.abs(maps.values.numpy()).reshape(len(maps.values), -1).max(1)
    varies = lengths > 1e-6 * sizes * np.sqrt(len(columns))  # more than rounding
    standard: NDArray[np.float64] = np.where(varies, columns / np.where(varies, lengths, 1), 0)
    return standard


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    pair = trained_and_untrained(scene, options)
    channel, channels = pair.most_similar, len(pair.correlations)
    tried = _tried_of(options, channels)
    others = min(tried, pair.chance.shape[1])
    return {
        "layer": pair.layer.name,
        "channels": channels,
        "tried": tried,
        "alike": best_of(pair.correlations, tried),
        "one": best_of(pair.correlations, 1),
        "others": others,
        "chance": best_of(pair.chance, others) if others else 0.0,
        "channel": channel,
        "partner": int(pair.partners[channel]),
        "most_alike": float(pair.alike[channel]),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, options["layer"]).name, "weights": "random"}


PART = Part(
    name="untrained",
    sentence=mark(
        "The channels of a layer beside those of the same network with random weights; a click on "
        "one shows the untrained channel that is most like it, of as many as are looked through; a "
        "chart shows what chance alone gives for so many."
    ),
    options=(Option("layer", "first", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)


_GRID_PX = 190  # height
_BINS = 10  # of the correlations from 0 to 1
_BEST, _ALL = "best", "all"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw both grids, the picked channel beside its most similar random one, and the chart."""
    with turn(say("The same network with random weights"), "lesson", model=scene.model.name):
        pair = trained_and_untrained(scene, options)
    # with random weights values are smaller or larger: each side has its own scale
    ours, theirs = (
        make_grid(maps, scale="symmetric", colormap=diverging(), aspect=2)
        for maps in (pair.trained, pair.untrained)
    )
    channels = len(pair.correlations)
    tried = choose(
        st.select_slider,
        say("Random channels that are looked through for the most alike"),
        _counts_to_try(channels),
        key,
        TRIED,
        first=channels,
    )
    remember_options(key, {TRIED: str(tried)}, {TRIED: str(channels)})
    channel = picked_channel(key, channels, pair.most_similar)
    partner = int(pair.partners_of(tried)[channel])
    with st.container(key="hv-two-halves"):  # one below the other on a phone
        left, right = st.columns(2)
        trained_half, random_half = st.columns(2)  # both grids begin at one height
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
    with right:
        _show_chart(pair, key)
    with trained_half:
        st.markdown("**" + say("Trained") + "**")
        alt = say("Trained channels of {layer}. A click compares one.", layer=pair.layer.name)
        mosaic(ours, alt, partial(pick_channel, key), key=f"{key} trained", height=_GRID_PX)
    with random_half:
        st.markdown("**" + say("Random weights") + "**")
        alt = say("Channels of {layer} with random weights.", layer=pair.layer.name)
        mosaic(theirs, alt, lambda *_: None, key=f"{key} untrained", height=_GRID_PX)


def _show_chart(pair: TrainedAndUntrained, key: str) -> None:
    """Draw the best correlation by the number of choices, or a histogram of all."""
    names = {_BEST: say("the best of so many"), _ALL: say("all of them")}
    chosen = choose_button(say("Correlations"), names, key, "chart", first=_BEST)
    series = {say("trained and random"): pair.correlations, say("random and random"): pair.chance}
    if chosen == _BEST:
        counts = _counts_to_try(pair.chance.shape[1])
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
    """Return the percentage in each bin from 0 to 1."""
    counts, _ = np.histogram(np.minimum(correlations, 1), _BINS, (0, 1))
    shares: NDArray[np.float64] = 100 * counts / correlations.size
    return shares
