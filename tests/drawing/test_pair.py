"""A pair's pictures, held against NumPy on the plain numbers."""

import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing.grid import make_grid
from hookviz.drawing.pair import before_and_after, draw_pair, why_unlike
from hookviz.drawing.scales import SCALES

RNG = np.random.default_rng(3)


def maps(*shape: int, low: float = -1.0) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.uniform(low, 1, shape).astype(np.float32)


@pytest.mark.parametrize("scale", SCALES)
def test_the_same_colour_is_the_same_value_in_both(scale: str) -> None:
    a, b = maps(4, 5, 6), 3 * maps(4, 5, 6)
    pair = draw_pair(a, b, titles=("A", "B"), scale=scale)
    assert np.array_equal(pair.a.limits.low, pair.b.limits.low)
    assert np.array_equal(pair.a.limits.high, pair.b.limits.high)
    together = make_grid(np.concatenate([a, b], axis=2), scale=scale)
    assert np.array_equal(pair.b.limits.high, together.limits.high)
    assert np.array_equal(pair.a.levels, together.levels[:, :, :6])
    assert np.array_equal(pair.b.levels, together.levels[:, :, 6:])


def test_the_difference_is_b_without_a() -> None:
    a, b = maps(4, 5, 6), maps(4, 5, 6)
    difference = draw_pair(a, b, titles=("conv", "relu")).difference
    assert difference is not None
    alone = make_grid(b - a, scale="balanced", colormap="RdBu_r")
    assert np.array_equal(difference.levels, alone.levels)
    assert np.array_equal(difference.stats.mean, alone.stats.mean)
    assert difference.title == "relu − conv"
    assert difference.legend.startswith("B − A: red where B is higher, blue where A is.")
    rise = draw_pair(a, a + 1, titles=("A", "B")).difference
    assert rise is not None
    assert rise.limits.low[0] == -rise.limits.high[0]
    a[0, 0, 0], b[0, 0, 0], b[1, 2, 2] = np.inf, np.inf, np.nan
    difference = draw_pair(a, b, titles=("A", "B")).difference
    assert difference is not None
    assert difference.stats.nan.tolist() == [1, 1, 0, 0]


def test_every_picture_has_its_channels_in_one_order() -> None:
    a, b = maps(6, 3, 3), maps(6, 3, 3)
    by_mean = draw_pair(a, b, titles=("A", "B"), order="mean", top=4)
    expected = np.argsort(-b.mean(axis=(1, 2)))[:4].tolist()
    by_hand = draw_pair(a, b, titles=("A", "B"), order=[5, 0, 3], top=2)
    for pair, order in ((by_mean, expected), (by_hand, [5, 0])):
        for grid, values in ((pair.a, a), (pair.b, b), (pair.difference, b - a)):
            assert grid is not None
            assert grid.order.tolist() == order
            alone = make_grid(values, limits=grid.limits, colormap=grid.colormap.name)
            assert np.array_equal(grid.levels, alone.levels[order])


@pytest.mark.parametrize(
    ("low_a", "low_b", "colormap"), [(0, 0, "inferno"), (-1, 0, "RdBu_r"), (0, -1, "RdBu_r")]
)
def test_the_signs_of_either_choose_the_colours_of_both(
    low_a: float, low_b: float, colormap: str
) -> None:
    pair = draw_pair(maps(2, 4, 4, low=low_a), maps(2, 4, 4, low=low_b), titles=("A", "B"))
    assert (pair.a.colormap.name, pair.b.colormap.name) == (colormap, colormap)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("shape", [(4, 9, 9), (7, 5, 6)])
def test_of_two_shapes_there_is_no_difference_but_one_scale(
    scale: str, shape: tuple[int, int, int]
) -> None:
    a, b = maps(4, 5, 6), 3 * maps(*shape)
    pair = draw_pair(a, b, titles=("A", "B"), scale=scale)
    assert (pair.difference, pair.alike) == (None, False)
    if scale != "channel":
        assert pair.a.limits.high[0] == pair.b.limits.high[0]
        assert set(pair.a.limits.low) == set(pair.b.limits.low)
    assert (pair.a.shape, pair.b.shape) == (a.shape, b.shape)
    assert "64 maps of 56×56 and B 128 of 28×28" in why_unlike((64, 56, 56), (128, 28, 28))


def test_the_sprite_has_the_tiles_of_b_and_below_them_those_of_a() -> None:
    a, b = maps(4, 5, 6), maps(4, 5, 6)
    pair = draw_pair(a, b, titles=("A", "B"), order="max")
    stacked, one, other = (
        np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
        for png in (pair.sprite, pair.b.sprite, pair.a.sprite)
    )
    assert np.array_equal(stacked, np.concatenate([one, other]))
    assert len(one) == pair.b.sprite_geometry.height


def test_before_and_after_share_their_colours_and_say_the_largest_change() -> None:
    before = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 4, 4)
    after = before.copy()
    after[1] *= 3
    first, second = before_and_after("conv", before, after)
    assert (first.state, second.state) == ("before", "after")
    assert (first.layer, second.title) == ("conv", "conv")
    assert second.caption == "largest change 2.00; colours as before."
    assert first.grid.limits == second.grid.limits
    assert first.grid.limits.high[0] == 3
    np.testing.assert_array_equal(first.grid.levels[0], second.grid.levels[0])
    assert (first.grid.levels[1] != second.grid.levels[1]).any()
    assert before_and_after("conv", before, before, "as it was")[1].caption == "as it was"
