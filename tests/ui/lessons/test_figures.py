import pytest
import torch

from hookviz.capturing.inputs import prepare_input
from hookviz.ui.lessons.figures import MIXED, UNKNOWN, chosen_samples, verdicts
from hookviz.ui.lessons.parts import each_sample
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_what_is_unknown_is_no_class_of_the_network() -> None:
    assert {each.kind for each in chosen_samples(star(), UNKNOWN)} == {"photo"}
    assert {each.kind for each in chosen_samples(star(), MIXED)} == {"photo", "drawn"}
    assert len(chosen_samples(cat(), UNKNOWN)) == len(chosen_samples(cat(), MIXED)) == 8


def test_scores_are_the_networks_own_and_sure_ones_are_counted() -> None:
    scene, sure = star(), 0
    found = verdicts(scene, UNKNOWN)
    for verdict in found:
        with torch.no_grad():
            own = scene.model.network(prepare_input(scene.model, verdict.sample.path).tensor)[0]
        assert verdict.scores.scores.tolist() == pytest.approx(own.tolist(), abs=1e-4)
        sure += bool(own.softmax(0).max() > 0.5)
    facts = each_sample.PART.facts(scene, with_defaults(each_sample.PART))
    assert facts == {"pictures": len(found), "sure": sure, "classes": 20}
