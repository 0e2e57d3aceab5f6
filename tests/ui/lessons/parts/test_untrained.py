from itertools import combinations

import numpy as np
import pytest

import hookviz
from hookviz.errors import ModelError
from hookviz.ui.lessons.parts.untrained import PART, TRIED, best_of, trained_and_untrained
from tests.ui.lessons.parts.scenes import star, untrained, with_defaults


def test_the_most_alike_are_found_by_correlation_and_chance_is_random_channels_own() -> None:
    options = with_defaults(PART, layer="first")
    found = trained_and_untrained(star(), options)
    name = found.layer.name
    ours, theirs = (
        hookviz.capture(scene.model, star().model_input, name)[name].values.flatten(1).numpy()
        for scene in (star(), untrained())
    )
    expected = np.abs(np.corrcoef(ours, theirs)[: len(ours), len(ours) :])
    np.testing.assert_allclose(found.alike, expected.max(1), atol=1e-5)
    facts = PART.facts(star(), options)
    assert facts["alike"] == pytest.approx(expected.max(1).mean(), abs=1e-5)
    assert facts["most_alike"] == pytest.approx(expected.max(), abs=1e-5)
    best = np.unravel_index(expected.argmax(), expected.shape)
    assert (facts["channel"], facts["partner"]) == tuple(int(each) for each in best)
    among = np.abs(np.corrcoef(theirs))
    np.fill_diagonal(among, np.nan)
    assert facts["chance"] == pytest.approx(np.nanmax(among, 1).mean(), abs=1e-5)
    assert facts["others"] == len(theirs) - 1
    with pytest.raises(ModelError, match="random already"):
        PART.facts(untrained(), options)


def test_the_best_of_so_many_is_its_mean_over_all_choices() -> None:
    numbers = np.random.default_rng(3).random((4, 6))
    for tried in range(1, 7):
        choices = [
            max(row[list(chosen)]) for row in numbers for chosen in combinations(range(6), tried)
        ]
        assert best_of(numbers, tried) == pytest.approx(np.mean(choices))
    grows = [best_of(numbers, tried) for tried in range(1, 7)]
    assert grows == sorted(grows)


def test_as_many_as_were_chosen_are_looked_through() -> None:
    options = {**with_defaults(PART, layer="first"), TRIED: "4"}
    found = trained_and_untrained(star(), options)
    facts = PART.facts(star(), options)
    assert (facts["tried"], facts["others"]) == (4, 4)
    assert facts["alike"] == pytest.approx(best_of(found.correlations, 4))
    assert best_of(found.correlations, 4) < found.alike.mean()
    partners = found.partners_of(4)
    assert partners.max() < 4
    np.testing.assert_array_equal(partners, found.correlations[:, :4].argmax(1))
    assert PART.facts(star(), {**options, TRIED: "999"})["tried"] == facts["channels"]
