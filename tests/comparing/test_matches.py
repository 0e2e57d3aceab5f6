import numpy as np
import pytest

from hookviz.comparing.matches import ChannelMatches, best_matches


def test_the_highest_correlation_of_all_is_found() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((30, 5)), rng.standard_normal((30, 8))
    second[:, 6] += 2 * first[:, 1]
    correlations_of_all = np.corrcoef(first.T, second.T)[:5, 5:]
    channels, correlations = best_matches(first, second)
    assert channels.tolist() == correlations_of_all.argmax(1).tolist()
    assert channels[1] == 6
    np.testing.assert_allclose(correlations, correlations_of_all.max(1), rtol=1e-12)


def test_of_equal_ones_it_is_the_lower_number_and_constants_match_none() -> None:
    values = np.arange(6.0)[:, None]
    constant = np.full((6, 1), 0.1)
    channels, correlations = best_matches(
        np.hstack([values, constant]), np.hstack([constant, values, values])
    )
    assert channels.tolist() == [1, -1]
    np.testing.assert_array_equal(np.isnan(correlations), [False, True])
    channels, correlations = best_matches(values, constant)
    assert channels.tolist() == [-1]
    assert np.isnan(correlations).all()


def test_the_best_stand_first_and_those_without_a_number_last() -> None:
    matches = ChannelMatches("a", "b", np.array([1, -1, 0]), np.array([0.2, np.nan, 0.9]))
    assert matches.best_first.tolist() == [2, 0, 1]


@pytest.mark.parametrize(("images", "chance"), [(14, 0.7), (1000, 0.1)])
def test_with_few_images_the_best_of_many_is_high_by_chance(images: int, chance: float) -> None:
    first, second = (np.random.default_rng(seed).standard_normal((images, 512)) for seed in (2, 3))
    assert best_matches(first, second)[1].mean() == pytest.approx(chance, abs=0.05)
