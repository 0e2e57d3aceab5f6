import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from hookviz.drawing.layout import Geometry, lay_out, mosaic
from hookviz.drawing.statistics import (
    BINS,
    Levels,
    channel_stats,
    histogram,
    order,
    strongest_cells,
)
from hookviz.errors import HookVizError

GEOMETRIES = st.builds(
    lambda count, columns, height, width, zoom, gap, header: Geometry(
        count, math.ceil(count / columns), columns, height, width, zoom, gap, header
    ),
    st.integers(1, 30),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
)


def picture_by_loops(levels: Levels, geometry: Geometry, fill: int) -> Levels:
    """The mosaic, pixel by pixel."""
    down = geometry.header + geometry.tile_height * geometry.magnification + geometry.gap
    across = geometry.tile_width * geometry.magnification + geometry.gap
    picture = np.full((geometry.height, geometry.width), fill, dtype=np.uint8)
    for position, tile in enumerate(levels):
        top = position // geometry.columns * down + geometry.header
        left = position % geometry.columns * across
        for y, x in product(
            range(tile.shape[0] * geometry.magnification),
            range(tile.shape[1] * geometry.magnification),
        ):
            cell = tile[y // geometry.magnification, x // geometry.magnification]
            picture[top + y, left + x] = cell
    return picture


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
        elements=st.floats(width=32),
    )
)
def test_stats_agree_with_exact_sums(values: NDArray[Any]) -> None:
    stats = channel_stats(values)
    for channel, plane in enumerate(values):
        kept = [float(value) for value in plane.ravel() if math.isfinite(value)]
        assert stats.nan[channel] == sum(math.isnan(value) for value in plane.ravel())
        assert stats.inf[channel] == sum(math.isinf(value) for value in plane.ravel())
        if not kept:
            for statistic in ("minimum", "maximum", "mean", "variance", "zeros"):
                assert math.isnan(getattr(stats, statistic)[channel])
            continue
        mean = math.fsum(kept) / len(kept)
        variance = math.fsum((value - mean) ** 2 for value in kept) / len(kept)
        size = max(map(abs, kept))
        assert stats.minimum[channel] == min(kept)
        assert stats.maximum[channel] == max(kept)
        assert stats.mean[channel] == pytest.approx(mean, rel=1e-12, abs=size * 1e-14)
        assert stats.variance[channel] == pytest.approx(variance, rel=1e-9, abs=(size * 1e-14) ** 2)
        assert stats.zeros[channel] == kept.count(0.0) / len(kept)


@pytest.mark.parametrize("shape", [(3, 200, 211), (70, 33, 31), (2048, 7, 7), (5000, 1, 1)])
def test_stats_of_more_values_than_one_chunk(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    values = (rng.normal(size=shape) + 1000).astype(np.float32)
    values[rng.random(shape) < 0.3] = 0
    stats = channel_stats(values)
    wide = values.astype(np.float64)
    np.testing.assert_allclose(stats.mean, wide.mean(axis=(1, 2)), rtol=1e-13)
    np.testing.assert_allclose(stats.variance, wide.var(axis=(1, 2)), rtol=1e-10)
    np.testing.assert_array_equal(stats.zeros, (values == 0).mean(axis=(1, 2)))
    np.testing.assert_array_equal(stats.minimum, values.min(axis=(1, 2)))
    np.testing.assert_array_equal(stats.maximum, values.max(axis=(1, 2)))


def test_a_large_mean_an_order_of_memory_and_missing_values_change_nothing() -> None:
    values = np.array([[[1e6, 1e6 + 1], [1e6, 1e6 + 1]]], dtype=np.float32)
    assert channel_stats(values).variance[0] == 0.25
    values = np.random.default_rng(2).normal(size=(6, 5, 4)).astype(np.float32)
    columns = channel_stats(np.asfortranarray(values))
    np.testing.assert_array_equal(columns.mean, channel_stats(values).mean)
    values = np.array([[[np.nan]], [[-2.0]], [[3.0]], [[np.inf]]], dtype=np.float32)
    stats = channel_stats(values)
    assert (stats.lowest, stats.highest) == (-2, 3)
    assert math.isnan(channel_stats(values[:1]).lowest)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((1000,), r"needs \(C, H, W\); the shape given is \(1000,\)"),
        ((28, 28), r"values\[None\]"),
        ((1, 3, 28, 28), r"values\[0\]"),
        ((3, 0, 28), "empty"),
        ((), r"\(C, H, W\)"),
    ],
)
def test_other_shapes_are_refused(shape: tuple[int, ...], hint: str) -> None:
    with pytest.raises(HookVizError, match=hint):
        channel_stats(np.zeros(shape, dtype=np.float32))


def test_orders() -> None:
    values = np.array(
        [
            [[0, 1]],  # mean 0.5, variance 0.25, half zeros
            [[np.nan, np.nan]],
            [[4, 4]],
            [[-9, 9]],
            [[0, 1]],
            [[0, 0]],
        ],
        dtype=np.float32,
    )
    stats = channel_stats(values)
    assert order(stats).tolist() == [0, 1, 2, 3, 4, 5]
    assert order(stats, "max").tolist() == [3, 2, 0, 4, 5, 1]
    assert order(stats, "mean").tolist() == [2, 0, 4, 3, 5, 1]
    assert order(stats, "variance").tolist() == [3, 0, 4, 2, 5, 1]
    assert order(stats, "zeros").tolist() == [5, 0, 4, 2, 3, 1]
    assert order(stats, "max", 2).tolist() == [3, 2]
    assert order(stats, "index", 3).tolist() == [0, 1, 2]
    assert order(stats, "index", 300).tolist() == [0, 1, 2, 3, 4, 5]


@given(GEOMETRIES)
def test_boxes_and_locate_agree_and_nothing_overlaps(geometry: Geometry) -> None:
    owner = np.full((geometry.height, geometry.width), -1)
    for position in range(geometry.count):
        left, top, right, bottom = geometry.box(position)
        assert right - left == geometry.tile_width * geometry.magnification
        assert bottom - top == geometry.tile_height * geometry.magnification
        assert left >= 0
        assert right <= geometry.width
        assert top >= 0
        assert bottom <= geometry.height
        assert (owner[top:bottom, left:right] == -1).all()
        owner[top:bottom, left:right] = position
    for y, x in product(range(geometry.height), range(geometry.width)):
        found = geometry.locate(x, y)
        assert (-1 if found is None else found[0]) == owner[y, x]
        if found:
            left, top, _, _ = geometry.box(found[0])
            assert found[1] == (y - top) // geometry.magnification
            assert found[2] == (x - left) // geometry.magnification
            assert geometry.locate(x + 0.9, y + 0.9) == found


@given(GEOMETRIES)
def test_mosaic_is_what_loops_make(geometry: Geometry) -> None:
    shape = (geometry.count, geometry.tile_height, geometry.tile_width)
    levels = np.random.default_rng(4).integers(0, 250, shape, dtype=np.uint8)
    picture = mosaic(levels, geometry, 255)
    np.testing.assert_array_equal(picture, picture_by_loops(levels, geometry, 255))


@pytest.mark.parametrize(("x", "y"), [(-1, 0), (0, -1), (-0.1, 0), (14, 0), (0, 10), (1e9, 1e9)])
def test_nothing_is_located_outside(x: float, y: float) -> None:
    geometry = Geometry(3, 2, 2, 2, 3, 2, 2)
    assert (geometry.width, geometry.height) == (14, 10)
    assert geometry.locate(13, 3) == (1, 1, 2)
    assert geometry.locate(13, 9) is None  # a place without a tile
    assert geometry.locate(x, y) is None
    for position in (-1, 3):
        with pytest.raises(IndexError):
            geometry.box(position)


@given(st.integers(1, 2100), st.integers(1, 120), st.integers(1, 120), st.floats(0.2, 5), st.data())
def test_layouts_hold_every_tile_without_an_empty_row(
    count: int, height: int, width: int, aspect: float, data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(16, 3000))
    geometry = lay_out(count, height, width, aspect=aspect, width=wanted)
    places = geometry.rows * geometry.columns
    assert places - geometry.columns < count <= places
    assert geometry.magnification >= 1
    assert 1 <= geometry.gap <= 4
    if geometry.magnification > 1:  # never more than half too large, but where rounding is all
        side = max(geometry.width / wanted, geometry.height * aspect / wanted)
        assert side < 2


def test_layouts_that_people_meet() -> None:
    for count, columns in ((1, 1), (3, 3), (64, 8), (96, 12), (128, 16), (512, 32), (2048, 64)):
        geometry = lay_out(count, 7, 7)
        assert (geometry.columns, geometry.rows) == (columns, -(-count // columns))
    assert lay_out(1, 7, 7).height == pytest.approx(750, abs=4)
    assert lay_out(512, 7, 7).magnification == 5
    assert lay_out(512, 112, 112).magnification == 1


def test_the_strongest_cell_is_the_first_of_the_highest_finite_ones() -> None:
    values = np.array(
        [
            [[1, 3], [3, 2]],
            [[np.nan, -5], [np.inf, -4]],
            [[-np.inf, -np.inf], [-9, np.nan]],
            [[np.nan, np.nan], [np.nan, np.inf]],
        ],
        np.float32,
    )
    assert strongest_cells(values).tolist() == [1, 3, 2, 0]


def test_bins_are_numpys_over_the_finite_values() -> None:
    values = np.random.default_rng(0).normal(size=(3, 7, 5)).astype(np.float32)
    finite = values.astype(np.float64)
    values = np.concatenate([values.ravel(), [np.nan, np.inf, -np.inf]]).astype(np.float32)
    bins = histogram(values)
    counts, edges = np.histogram(finite, BINS)
    np.testing.assert_array_equal(bins.counts, counts)
    np.testing.assert_array_equal(bins.edges, edges)
    assert bins.left_out == 3
    assert bins.counts.sum() + bins.left_out == values.size
    assert len(bins.middles) == BINS
    assert edges[0] < bins.middles[0] < edges[1]
    large = histogram(np.full((4, 4), 3e14, np.float32))  # of which NumPy makes no bins
    assert (large.counts.sum(), np.unique(large.edges).size) == (16, BINS + 1)
    same = histogram(np.full((4, 4), 2.0, np.float32))
    assert same.counts.sum() == same.counts.max() == 16
    none = histogram(np.full(3, np.nan, np.float32))
    assert (none.counts.sum(), none.left_out) == (0, 3)
