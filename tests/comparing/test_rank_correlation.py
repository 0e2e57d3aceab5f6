import numpy as np
import pytest
from scipy import stats

from hookviz.comparing.rank_correlation import rank_correlation


@pytest.mark.parametrize("levels", [3, 40, 10_000])
def test_it_agrees_with_scipy_with_ties_and_without(levels: int) -> None:
    source = np.random.default_rng(levels)
    a = source.integers(0, levels, (12, 17)).astype(np.float32)
    b = a + source.integers(0, levels, a.shape)
    expected = stats.spearmanr(a.ravel(), b.ravel()).statistic
    assert rank_correlation(a, b) == pytest.approx(float(expected), abs=1e-12)
    assert rank_correlation(a, -(b**3)) == pytest.approx(-float(expected), abs=1e-12)
    assert rank_correlation(a, a) == pytest.approx(1)


def test_what_has_no_order_correlates_with_nothing() -> None:
    a = np.arange(4.0).reshape(2, 2)
    assert np.isnan(rank_correlation(a, np.ones((2, 2))))
    assert np.isnan(rank_correlation(a, np.array([[1, 2], [np.nan, 3]])))
    assert rank_correlation(a, np.array([[-np.inf, 0], [1, np.inf]])) == 1
