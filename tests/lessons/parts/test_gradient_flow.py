"""What the text of the lesson says of the gradient's way back."""

import numpy as np
import pytest

from hookviz.lessons.gradient_maps import layers_on_the_way, way_back
from hookviz.lessons.parts.gradient_flow import AT, CLASS, PART, both_ways
from hookviz.lessons.scores import own_scores
from hookviz.wording import number
from tests.lessons.parts.scenes import star, with_defaults


def test_facts_are_of_the_chosen_class_layer_and_limit() -> None:
    scene = star()
    at = layers_on_the_way(scene)[1].name
    options = {**with_defaults(PART, limit="20"), CLASS: "4", AT: at}
    facts = PART.facts(scene, options)
    plain = {each.layer: each for each in way_back(scene, 4)}
    limit = plain[at].came * 0.2
    clamped = way_back(scene, 4, at, limit)
    assert facts["label"] == own_scores(scene).name(4)
    assert facts["hooked"] == at
    assert facts["lets"] == number(limit)
    assert facts["cut"] == pytest.approx(float((np.abs(plain[at].values) > limit).mean()))
    assert facts["whole"] == number(plain[""].norm)
    assert facts["cropped"] == number(clamped[-1].norm)


def test_at_first_it_is_the_likeliest_class_and_the_last_layer_but_one() -> None:
    scene = star()
    facts = PART.facts(scene, with_defaults(PART))
    scores = own_scores(scene)
    assert facts["label"] == scores.name(scores.best)
    assert facts["hooked"] == layers_on_the_way(scene)[-2].name
    unclamped, clamped, limit = both_ways(scene, with_defaults(PART))
    assert 0 < limit < max(each.came for each in unclamped)
    assert [each.layer for each in unclamped] == [each.layer for each in clamped]
