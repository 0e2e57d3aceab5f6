import pytest
import torch

from hookviz.capturing.inputs import prepare
from hookviz.ui.lessons.figures import MIXED, UNKNOWN, chosen_samples, verdicts
from tests.ui.lessons.parts.scenes import cat, star


def test_what_is_unknown_is_no_class_of_the_network() -> None:
    assert {each.kind for each in chosen_samples(star(), UNKNOWN)} == {"photo"}
    assert {each.kind for each in chosen_samples(star(), MIXED)} == {"photo", "drawn"}
    assert len(chosen_samples(cat(), UNKNOWN)) == len(chosen_samples(cat(), MIXED)) == 8


def test_scores_are_the_networks_own() -> None:
    scene = star()
    for verdict in verdicts(scene, UNKNOWN):
        with torch.no_grad():
            own = scene.model.network(prepare(scene.model, verdict.sample.path).tensor)[0]
        assert verdict.scores.scores.tolist() == pytest.approx(own.tolist(), abs=1e-4)
