"""What the text of the lesson says of one step."""

from dataclasses import replace

from hookviz.lessons.parts.sgd_step import CLASS, PART, classes_to_teach, step_of, verdict
from hookviz.lessons.scores import own_scores
from hookviz.wording import number
from tests.lessons.parts.scenes import star, with_defaults


def test_it_teaches_a_class_that_the_image_is_not_taken_for() -> None:
    scene = star()
    scores = own_scores(scene)
    assert scores.best not in classes_to_teach(scene)
    options = with_defaults(PART, rate="0.01")
    facts = PART.facts(scene, options)
    assert facts["label"] == scores.name(scores.first(2)[1])
    other = {**options, CLASS: str(scores.first(3)[2])}
    assert PART.facts(scene, other)["label"] == scores.name(scores.first(3)[2])
    step = step_of(scene, options)
    assert facts["before"] == number(step.loss_before)
    assert facts["after"] == number(step.loss_after)
    assert facts["kept"] == step.kept


def test_the_verdict_is_of_the_loss_and_of_the_other_images() -> None:
    step = step_of(star(), with_defaults(PART, rate="0.001"))
    good = replace(step, loss_before=2.0, loss_after=1.0, others=((1, 1), (2, 2)))
    assert "the answers that they had" in verdict(good)
    assert "2 of 2 other pictures get" in verdict(replace(good, others=((1, 3), (2, 3))))
    assert "1 of 2 other pictures gets" in verdict(replace(good, others=((1, 1), (2, 3))))
    assert "too far" in verdict(replace(good, loss_after=3.0))
