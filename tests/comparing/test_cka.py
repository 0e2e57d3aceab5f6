from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hookviz
from hookviz.comparing import cka
from hookviz.comparing.cka import linear_cka

Floats = NDArray[np.float64]
EITHER = pytest.mark.parametrize("unbiased", [True, False])


def noise(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


def hsic(x: Floats, y: Floats) -> float:
    """tr(KHLH) / (N - 1)², as Kornblith et al. write it."""
    count = len(x)
    centring = np.eye(count) - np.ones((count, count)) / count
    return float(np.trace(x @ x.T @ centring @ y @ y.T @ centring)) / (count - 1) ** 2


def hsic_1(x: Floats, y: Floats) -> float:
    """Song et al.'s estimate, term by term as they print it."""
    count, ones = len(x), np.ones(len(x))
    k, l = x @ x.T, y @ y.T  # noqa: E741 - their letters
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    terms = np.trace(k @ l)
    terms += (ones @ k @ ones) * (ones @ l @ ones) / ((count - 1) * (count - 2))
    terms -= 2 / (count - 2) * (ones @ k @ l @ ones)
    return float(terms) / (count * (count - 3))


def plain(x: Floats, y: Floats, estimate: Any) -> float:
    value: float = estimate(x, y) / np.sqrt(estimate(x, x) * estimate(y, y))
    return value


@EITHER
def test_it_is_the_ratio_of_hsics(unbiased: bool) -> None:
    first = [noise(14, size, seed=size) + 3 for size in (3, 40)]
    second = [first[0] @ noise(3, 5, seed=2) + noise(14, 5, seed=3), noise(14, 7, seed=4), first[1]]
    cka = linear_cka(first, second, unbiased=unbiased)
    estimate = hsic_1 if unbiased else hsic
    expected = [[plain(x, y, estimate) for y in second] for x in first]
    np.testing.assert_allclose(cka, expected, rtol=1e-9, atol=1e-12)


def test_without_bias_unrelated_layers_are_near_0_where_the_plain_one_says_1() -> None:
    """16 images and 512 channels, again and again."""
    pairs = [(noise(16, 512, seed=seed), noise(16, 512, seed=1000 + seed)) for seed in range(40)]
    without = [linear_cka([x], [y])[0, 0] for x, y in pairs]
    plainly = [linear_cka([x], [y], unbiased=False)[0, 0] for x, y in pairs]
    assert abs(np.mean(without)) < 0.03
    assert min(without) < 0
    assert min(plainly) > 0.9


@EITHER
def test_a_layer_that_is_the_same_for_all_images_has_none(unbiased: bool) -> None:
    constant = np.full((9, 3), 0.1)
    cka = linear_cka([noise(9, 4), constant], [noise(9, 4), constant], unbiased=unbiased)
    assert cka[0, 0] == pytest.approx(1, abs=1e-12)
    assert np.isnan(cka).tolist() == [[False, True], [True, True]]


@EITHER
def test_parts_at_a_time_give_the_same(unbiased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [noise(23, 5), noise(23, 9, seed=1)]
    whole = linear_cka(first, first, unbiased=unbiased)
    monkeypatch.setattr(cka, "_MOST_NUMBERS", 23 * 4 * 5)
    np.testing.assert_allclose(linear_cka(first, first, unbiased=unbiased), whole, atol=1e-13)
    monkeypatch.setattr(cka, "_MOST_NUMBERS", 1)
    np.testing.assert_allclose(linear_cka(first, first, unbiased=unbiased), whole, atol=1e-13)


def test_large_and_small_numbers_stay_within_range() -> None:
    x = noise(8, 3)
    np.testing.assert_allclose(linear_cka([x], [x * 1e200, x * 1e-200]), 1, atol=1e-9)


def test_too_few_images_are_told() -> None:
    with pytest.raises(hookviz.HookVizError, match=r"needs 4 .* there are 3; unbiased=False takes"):
        linear_cka([noise(3, 2)], [noise(3, 2)])
    with pytest.raises(hookviz.HookVizError, match=r"needs 2 images at least, and there is 1\."):
        linear_cka([noise(1, 2)], [noise(1, 2)], unbiased=False)
    assert linear_cka([noise(2, 2)], [noise(2, 2)], unbiased=False).shape == (1, 1)
