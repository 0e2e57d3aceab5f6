import numpy as np

from hookviz.drawing.histogram import BINS, histogram


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


def test_values_that_are_all_the_same_or_none_have_bins_too() -> None:
    same = histogram(np.full((4, 4), 2.0, np.float32))
    assert same.counts.sum() == same.counts.max() == 16
    none = histogram(np.full(3, np.nan, np.float32))
    assert (none.counts.sum(), none.left_out) == (0, 3)
