import numpy as np
import pytest

from hookviz.atlas.histograms import BINS, Histograms, edges


def of_parts(values: np.ndarray, cuts: list[int]) -> Histograms:
    histograms = Histograms(len(values))
    for part in np.split(values, cuts, axis=1):
        histograms.add(slice(0, len(values)), part)
    return histograms


@pytest.fixture
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    scales = np.array([[1e-20], [0.3], [1.0], [700.0]])
    return np.asarray(rng.standard_normal((4, 500)) * scales, np.float32)


def test_bins_hold_what_numpy_counts(values: np.ndarray) -> None:
    histograms = of_parts(values, [3, 40, 41, 333])
    for channel, row in enumerate(values):
        exponent = int(histograms.exponents[channel])
        expected, _ = np.histogram(row.astype(float), edges(exponent))
        np.testing.assert_array_equal(histograms.counts[channel], expected)
        assert histograms.counts[channel].sum() == 500
        largest = np.abs(row).max()
        assert largest < edges(exponent)[-1]
        assert largest >= edges(exponent - 1)[-1] or exponent == -64  # no wider than it has to be


@pytest.mark.parametrize("cuts", [[], [1], [250], [100, 200, 499]])
def test_the_order_and_the_parts_change_nothing(values: np.ndarray, cuts: list[int]) -> None:
    whole, parts = of_parts(values, []), of_parts(values, cuts)
    shuffled = of_parts(values[:, ::-1].copy(), cuts)
    joined = Histograms(4)
    for part in np.split(values, cuts or [7], axis=1)[::-1]:
        joined.merge(of_parts(part, []))
    for other in (parts, shuffled, joined):
        np.testing.assert_array_equal(other.counts, whole.counts)
        np.testing.assert_array_equal(other.exponents, whole.exponents)


def test_nothing_but_zeros_and_what_is_not_finite() -> None:
    histograms = Histograms(3)
    histograms.add(slice(1, 3), np.array([[0, 0, 0], [np.nan, np.inf, 2]], np.float32))
    assert histograms.counts[1, BINS // 2] == 3
    assert histograms.counts[2].sum() == 1
    assert histograms.counts[0].sum() == 0
    histograms.add(slice(1, 2), np.array([[-8.0]], np.float32))
    assert histograms.counts[1, BINS // 2] == 3
    assert histograms.counts[1].sum() == 4
