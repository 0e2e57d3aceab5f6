import torch

from hookviz.capturing.inputs import prepare
from hookviz.ui.lessons.figures import UNKNOWN, chosen_samples
from hookviz.ui.lessons.parts.each_sample import PART
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_those_that_it_is_sure_of_are_counted() -> None:
    scene = star()
    highest = []
    for sample in chosen_samples(scene, UNKNOWN):
        with torch.no_grad():
            scores = scene.model.network(prepare(scene.model, sample.path).tensor)[0]
        highest.append(float(scores.softmax(0).max()))
    facts = PART.facts(scene, with_defaults(PART))
    assert facts["sure"] == sum(chance > 0.5 for chance in highest)
    assert (facts["pictures"], facts["classes"]) == (len(highest), 20)
