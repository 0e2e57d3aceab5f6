import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import hookviz
from hookviz.comparing import channels
from hookviz.comparing.channels import compare_maps, rank_correlation

NAN, INF = math.nan, math.inf


def random_maps(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(5, 7, 4), (3, 11), (4, 2, 3, 5), (300, 31, 29)])
def test_numbers_are_those_of_plain_formulas(shape: tuple[int, ...]) -> None:
    a = random_maps(*shape)
    b = 0.3 * a + random_maps(*shape, seed=1) + 2
    comparison = compare_maps(a, b)
    assert len(comparison) == shape[0]
    for channel in range(shape[0]):
        x, y = (each[channel].flatten().tolist() for each in (a, b))
        dot = math.fsum(p * q for p, q in zip(x, y, strict=True))
        lengths = math.hypot(*x) * math.hypot(*y)
        gaps = [abs(p - q) for p, q in zip(x, y, strict=True)]
        assert comparison.cosine[channel] == pytest.approx(dot / lengths, abs=1e-12)
        assert comparison.correlation[channel] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
        assert comparison.mean_absolute_difference[channel] == pytest.approx(
            math.fsum(gaps) / len(gaps), rel=1e-12
        )
    ranked = sorted(range(len(a)), key=lambda each: -comparison.mean_absolute_difference[each])
    assert comparison.most_changed.tolist() == ranked
    assert comparison.most_changed.dtype == np.int64


def test_the_same_maps_agree_exactly_and_a_large_mean_drowns_nothing() -> None:
    maps = random_maps(6, 9, 9)
    comparison = compare_maps(maps, maps.clone())
    assert comparison.correlation.tolist() == comparison.cosine.tolist() == [1.0] * 6
    assert comparison.mean_absolute_difference.tolist() == [0.0] * 6
    assert comparison.most_changed.tolist() == [*range(6)]
    turned = compare_maps(maps, -maps)
    assert turned.correlation.tolist() == turned.cosine.tolist() == [-1.0] * 6
    a = 4096 + random_maps(1, 32, 32) / 64
    b = 4096 + random_maps(1, 32, 32, seed=1) / 64
    x, y = (each.numpy().ravel().astype(np.float64) for each in (a, b))
    comparison = compare_maps(a, b)
    assert comparison.correlation[0] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)


def test_what_does_not_vary_has_no_correlation_and_what_is_zero_no_direction() -> None:
    varying = random_maps(1, 5, 3)
    constant, zero = torch.full_like(varying, 0.1), torch.zeros_like(varying)
    a = torch.cat([constant, zero, zero, varying])
    b = torch.cat([varying, varying, zero, constant])
    comparison = compare_maps(a, b)
    assert np.isnan(comparison.correlation).all()
    assert np.isnan(comparison.cosine).tolist() == [False, True, True, False]
    assert comparison.mean_absolute_difference[2] == 0
    assert comparison.most_changed[-1] == 2


def test_nan_and_infinity_are_told_and_stand_first() -> None:
    a, b = random_maps(5, 4, 4), random_maps(5, 4, 4, seed=1)
    b[1, 0, 0] = NAN
    b[2, 0, 0] = INF
    a[3, 0, 0] = b[3, 0, 0] = INF
    comparison = compare_maps(a, b)
    assert np.isnan(comparison.mean_absolute_difference).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert comparison.mean_absolute_difference[2] == INF
    for numbers in (comparison.correlation, comparison.cosine):
        assert np.isnan(numbers).tolist() == [False, True, True, True, False]
    assert comparison.most_changed[:3].tolist() == [1, 3, 2]


def test_one_cell_a_channel_and_other_types_work() -> None:
    vector = compare_maps(torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1.0, -1.0, 4.0]))
    assert vector.most_changed.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(vector.cosine, [1, -1, NAN])
    whole = torch.arange(12).reshape(3, 2, 2)
    halves = compare_maps(whole.bfloat16(), whole.double())
    assert compare_maps(whole, whole + 1).mean_absolute_difference.tolist() == [1, 1, 1]
    assert halves.correlation.tolist() == [1, 1, 1]
    wanting = random_maps(2, 3, 3).requires_grad_()
    assert compare_maps(wanting, wanting.transpose(1, 2)).cosine.shape == (2,)


def test_parts_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = random_maps(7, 6, 6), random_maps(7, 6, 6, seed=1)
    whole = compare_maps(a, b)
    monkeypatch.setattr(channels, "_CHUNK", 80)
    parts = compare_maps(a, b)
    np.testing.assert_array_equal(parts.correlation, whole.correlation)
    np.testing.assert_array_equal(parts.mean_absolute_difference, whole.mean_absolute_difference)


def test_what_cannot_be_compared_is_said() -> None:
    maps = random_maps(4, 6, 6)
    with pytest.raises(hookviz.HookVizError, match=r"4×6×6 .* 4×6×5 .*the same shape"):
        compare_maps(maps, maps[..., :5])
    with pytest.raises(hookviz.HookVizError, match="no channels to compare in a tensor of 0×6×6"):
        compare_maps(maps[:0], maps[:0])
    with pytest.raises(hookviz.HookVizError, match="of one number"):
        compare_maps(torch.tensor(1.0), torch.tensor(2.0))
    with pytest.raises(hookviz.HookVizError, match="Complex"):
        compare_maps(maps.to(torch.complex64), maps)


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
