from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.colors import Normalize
from numpy.typing import NDArray
from skimage.color import deltaE_ciede2000, rgb2lab

from hookviz.drawing.colormaps import (
    COLORMAPS,
    INF_COLOUR,
    INF_LEVEL,
    LEVELS,
    NAN_COLOUR,
    NAN_LEVEL,
    Colormap,
    quantise,
)
from hookviz.drawing.grid import make_grid
from hookviz.drawing.scales import legend, limits, ticks
from hookviz.drawing.statistics import channel_stats
from hookviz.errors import HookVizError

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
DIVERGING = COLORMAPS["RdBu_r"]


def array(*channels: list[float]) -> NDArray[Any]:
    return np.array(channels, dtype=np.float32)[:, None, :]


def says(values: NDArray[Any], scale: str, colormap: str = "viridis") -> str:
    stats = channel_stats(values)
    return legend(limits(values, stats, scale), stats, COLORMAPS[colormap])


def bounds(values: NDArray[Any], scale: str) -> list[tuple[float, float]]:
    found = limits(values, channel_stats(values), scale)
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def test_limits_of_each_policy_pass_over_what_is_not_finite() -> None:
    values = array([-1, 0, 2], [0, 0, 0], [1, 3, 5])
    assert bounds(values, "channel") == [(-1, 2), (0, 0), (1, 5)]
    assert bounds(values, "layer") == [(-1, 5)] * 3
    assert bounds(values, "symmetric") == [(-5, 5)] * 3
    assert bounds(-values, "symmetric") == [(-5, 5)] * 3
    assert bounds(values, "percentile") == [(-1, 5)] * 3  # too few values to leave any out
    values = array([np.nan, np.nan], [-np.inf, 2], [np.inf, 7])
    assert bounds(values, "channel") == [(0, 0), (2, 2), (7, 7)]
    assert bounds(values, "layer") == [(2, 7)] * 3
    assert bounds(values, "percentile") == [(2, 7)] * 3
    assert bounds(values[:1], "symmetric") == [(-1, 1)]


@pytest.mark.parametrize("spoilt", [False, True])
def test_percentiles_leave_out_one_value_in_a_hundred_at_each_end(spoilt: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 50, 20)).astype(np.float32)
    if spoilt:
        values[3, :5] = np.nan
        values[4, :5] = np.inf
    low, high = bounds(values, "percentile")[0]
    kept = values[np.isfinite(values)]
    assert low == np.percentile(kept, 1, method="lower")
    assert high == np.percentile(kept, 99, method="higher")
    assert ((kept < low) | (kept > high)).mean() <= 0.02


def test_percentiles_of_a_layer_that_is_nearly_all_zeros_show_the_rest() -> None:
    values = np.zeros((4, 50, 50), dtype=np.float32)
    values[2, 3, 3] = 8
    assert bounds(values, "percentile")[0] == (0, 8)
    assert "percentile" not in says(values, "percentile")


@given(
    arrays(np.float32, st.tuples(st.just(1), st.integers(1, 4), st.integers(1, 9)), elements=FINITE)
)
def test_levels_are_monotone_and_reach_both_ends(values: NDArray[Any]) -> None:
    stats = channel_stats(values)
    levels = quantise(values, stats.minimum, stats.maximum)
    ascending = np.argsort(values, axis=None)
    assert (np.diff(levels.ravel()[ascending].astype(int)) >= 0).all()
    assert levels.min() == 0
    assert levels.max() == (LEVELS - 1 if stats.lowest < stats.highest else 0)


@given(FINITE, FINITE, st.lists(FINITE, min_size=1, max_size=20))
def test_levels_are_those_of_matplotlib(one: float, other: float, drawn: list[float]) -> None:
    low, high = min(one, other), max(one, other)
    values = array(drawn)
    levels = quantise(values, np.array([low]), np.array([high]))
    if low == high:
        assert not levels.any()
        return
    position = Normalize(low, high, clip=True)(values.astype(np.float64)).filled()
    exact = np.minimum(np.floor(position * LEVELS), LEVELS - 1)
    # float32 can fall on the other side of a boundary between two levels, no further
    edge = np.abs(position * LEVELS - np.round(position * LEVELS)) < 1e-3
    np.testing.assert_array_equal(levels[~edge], exact[~edge])
    assert np.abs(levels.astype(int) - exact).max() <= 1


def test_zero_is_the_middle_and_what_is_not_finite_has_levels_of_its_own() -> None:
    for wanted in (1e-44, 1e-30, 0.1, 3.0, 7e5, 3e38):
        peak = float(np.float32(wanted))
        values = array([-peak, -peak * 0.6, 0, peak * 0.6, peak])
        levels = quantise(values, np.array([-peak]), np.array([peak])).ravel().tolist()
        assert levels[::4] == [0, LEVELS - 1]
        assert levels[1] + levels[3] == 2 * levels[2] == LEVELS - 1
        assert 0 < levels[1] < levels[2] < levels[3] < LEVELS - 1
    values = array([1, np.nan, 2, np.inf, -np.inf], [5, 5, 5, np.nan, 5])
    odd = quantise(values, np.array([1.0, 5.0]), np.array([2.0, 5.0]))
    assert odd[0, 0].tolist() == [0, NAN_LEVEL, LEVELS - 1, INF_LEVEL, INF_LEVEL]
    assert odd[1, 0].tolist() == [0, 0, 0, NAN_LEVEL, 0]


def lab(colormap: str) -> NDArray[Any]:
    colours = mpl.colormaps[colormap].resampled(LEVELS)(np.arange(LEVELS))[None, :, :3]
    return np.asarray(rgb2lab(colours)[0])


def distance(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """How different colours look: CIEDE2000, where 1 is just noticeable."""
    return np.asarray(deltaE_ciede2000(one, other))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("colormap", COLORMAPS.values(), ids=lambda colormap: colormap.name)
def test_colormaps_change_evenly(colormap: Colormap) -> None:
    colours = lab(colormap.name)
    steps = distance(colours[:-8:8], colours[8::8])
    assert steps.std() / steps.mean() < 0.26  # matplotlib's "jet" has 0.56
    lightness = colours[:, 0]
    middle = LEVELS // 2
    if colormap.diverging:
        halves = lightness[middle] - lightness
        assert abs(halves[0] - halves[-1]) < 7
        assert (halves > 0).sum() + (halves < 0).sum() > LEVELS - 20
        assert (halves.max() > 50) != (halves.min() < -50)
    else:
        way = np.sign(lightness[-1] - lightness[0])  # from dark to light, or from light to dark
        assert (way * np.diff(lightness) > -0.05).all()
        assert abs(lightness[-1] - lightness[0]) > 70


@pytest.mark.parametrize("colour", [NAN_COLOUR, INF_COLOUR])
def test_reserved_colours_are_in_no_colormap(colour: str) -> None:
    rgb = np.array(list(bytes.fromhex(colour[1:]))) / 255
    reserved = rgb2lab(rgb[None, None])[0]
    for colormap in COLORMAPS:
        colours = lab(colormap)
        assert distance(colours, np.broadcast_to(reserved, colours.shape)).min() > 15


def test_legends() -> None:
    values = array([-1.32, 0, 4.1], [0, 0, 0])
    assert says(values, "layer") == (
        "Colours run from dark violet (−1.32) to yellow (4.10), the same for all channels of "
        "this layer."
    )
    assert "through white (1.39) to red (4.10)" in says(values, "layer", "RdBu_r")
    assert says(values, "symmetric", "RdBu_r") == (
        "Blue is below zero, white is zero and red is above, and the end colours stand for ±4.10 "
        "in all channels of this layer."
    )
    assert says(values, "channel") == (
        "Each channel has its own scale, dark violet at its lowest and yellow at its highest "
        "value, so compare shapes between channels, not brightness; a channel with one value "
        "everywhere is dark violet."
    )
    assert "one value" not in says(values[:1], "channel")
    assert says(values[:1], "channel").startswith("Colours run from dark violet (−1.32)")
    many = np.arange(1000, dtype=np.float32).reshape(1, 10, 100)
    assert says(many, "percentile", "gray") == (
        "Colours run from black (9.00, the layer's 1st percentile) to white (990, its 99th), and "
        "the values beyond, at most 2 % of all, take the end colours."
    )
    values = array([np.nan, 1, 2, np.inf, -np.inf])
    assert says(values, "layer").endswith(
        "of this layer; 1 NaN value is magenta; 2 infinite values are cyan."
    )
    assert says(array([np.nan]), "layer") == (
        "This layer has no finite value; 1 NaN value is magenta."
    )


@pytest.mark.parametrize(
    ("value", "scale", "word"),
    [
        (0, "layer", "0, drawn in blue"),
        (0, "symmetric", "0, drawn in white"),
        (2, "symmetric", "2.00, drawn in red"),
        (-2, "symmetric", "−2.00, drawn in blue"),
        (2, "percentile", "2.00, drawn in blue"),
    ],
)
def test_the_legend_of_one_value_names_the_colour_it_has(
    value: float, scale: str, word: str
) -> None:
    values = array([value, value], [value, value])
    assert says(values, scale, "RdBu_r") == f"Every value of this layer is {word}."
    found = limits(values, channel_stats(values), scale)
    level = int(quantise(values, found.low, found.high)[0, 0, 0])
    words = {0: DIVERGING.low, LEVELS // 2: DIVERGING.middle, LEVELS - 1: DIVERGING.high}
    assert word.endswith(words[level])


def test_ticks_have_both_ends_and_round_numbers_between() -> None:
    assert [label for _, label in ticks(-1.32, 4.1)] == ["−1.32", "0", "2", "4.10"]
    assert ticks(-3.2, 3.2)[2] == (0.5, "0")
    assert ticks(2, 2) == ((0.0, "2.00"),)
    assert [label for _, label in ticks(0, 0.031)] == ["0", "0.01", "0.02", "0.0310"]


@given(FINITE, FINITE)
def test_ticks_are_where_their_numbers_are(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    marks = ticks(low, high)
    fractions = [fraction for fraction, _ in marks]
    assert fractions == sorted(set(fractions))
    assert len(marks) <= 7
    for fraction, label in marks[1:-1]:
        if "×" not in label:
            shown = float(label.replace("−", "-").replace(",", ""))
            assert shown == pytest.approx(low + fraction * (high - low), abs=(high - low) * 1e-6)


def test_the_limits_of_another_picture_can_be_held() -> None:
    dim, bright = np.ones((2, 3, 3), np.float32), np.full((2, 3, 3), 4, np.float32)
    dim[:, 0], bright[:, 0] = 0, 0
    first = make_grid(dim)
    second = make_grid(bright, limits=first.limits)
    assert second.limits.high.tolist() == [1, 1]
    assert (first.limits.clipped, second.limits.clipped) == (False, True)
    assert (second.levels[:, 1:] == first.levels[:, 1:].max()).all()
    with pytest.raises(HookVizError, match="of 2 channels, and these values have 1"):
        make_grid(bright[:1], limits=first.limits)
