"""How alike trained and untrained maps are, against NumPy's own correlation."""

from itertools import combinations

import numpy as np
import pytest

import hookviz
from hookviz.errors import ModelError
from hookviz.ui.lessons.parts.untrained import PART, TRIED, best_of, trained_and_untrained
from tests.lessons.conftest import scene_of
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_the_most_alike_are_found_by_correlation() -> None:
    options = with_defaults(PART, layer="first")
    found = trained_and_untrained(star(), options)
    name = found.layer.name
    random = hookviz.load_model("shapesnet", "random")
    theirs = hookviz.capture(random, star().model_input, name)[name].values.flatten(1).numpy()
    ours = hookviz.capture(star().model, star().model_input, name)[name].values.flatten(1).numpy()
    expected = np.abs(np.corrcoef(ours, theirs)[: len(ours), len(ours) :])
    np.testing.assert_allclose(found.alike, expected.max(1), atol=1e-5)
    facts = PART.facts(star(), options)
    assert facts["alike"] == pytest.approx(expected.max(1).mean(), abs=1e-5)
    assert facts["most_alike"] == pytest.approx(expected.max(), abs=1e-5)
    best = np.unravel_index(expected.argmax(), expected.shape)
    assert (facts["channel"], facts["partner"]) == tuple(int(each) for each in best)


def test_what_chance_gives_is_that_of_random_channels_among_each_other() -> None:
    options = with_defaults(PART, layer="first")
    found = trained_and_untrained(star(), options)
    values = found.untrained.values.flatten(1).numpy()
    among = np.abs(np.corrcoef(values))
    np.fill_diagonal(among, np.nan)
    facts = PART.facts(star(), options)
    assert facts["chance"] == pytest.approx(np.nanmax(among, 1).mean(), abs=1e-5)
    assert facts["others"] == len(values) - 1


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


def test_of_random_weights_there_is_nothing_beside() -> None:
    scene = scene_of(hookviz.load_model("shapesnet", "random"), "star")
    with pytest.raises(ModelError, match="random already"):
        PART.facts(scene, with_defaults(PART))
