"""How alike trained and untrained maps are, against NumPy's own correlation."""

import numpy as np
import pytest

import hookviz
from hookviz.errors import ModelError
from hookviz.lessons.parts.untrained import PART, trained_and_untrained
from tests.lessons.conftest import scene_of
from tests.lessons.parts.scenes import star, with_defaults


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


def test_of_random_weights_there_is_nothing_beside() -> None:
    scene = scene_of(hookviz.load_model("shapesnet", "random"), "star")
    with pytest.raises(ModelError, match="random already"):
        PART.facts(scene, with_defaults(PART))
