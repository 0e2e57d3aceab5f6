"""Take one training step on the image: the loss and the first kernels before it and after it."""

from collections.abc import Mapping

from hookviz.language.saying import mark, say, say_count
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import own_scores
from hookviz.lessons.sgd_step import Step, step_taken
from hookviz.wording import number, percent

_WRITTEN = ("0.00001", "0.0001", "0.001", "0.01", "0.1")
RATES: Mapping[str, float] = {written: float(written) for written in _WRITTEN}
"""Learning rates as they are written."""
CLASS = "class"
"""Among the options the number of the class that is taught; in no file."""
_CHOICES = 4  # classes that can be taught


def classes_to_teach(scene: LessonScene) -> list[int]:
    """Return the likeliest classes, from the second on: of the first there is little to learn."""
    scores = own_scores(scene)
    return scores.first(_CHOICES + 1)[1:] or [scores.best]


def step_of(scene: LessonScene, options: Options) -> Step:
    """Return the step with the rate and towards the class that the options name."""
    target = options.get(CLASS, "")
    return step_taken(
        scene, int(target) if target else classes_to_teach(scene)[0], RATES[options["rate"]]
    )


def verdict(step: Step) -> str:
    """Return a sentence on what the step did to the loss, and to the answers for other images."""
    lost = len(step.others) - step.kept
    if step.loss_after >= step.loss_before:
        return say("The loss rose: the step went too far.")
    if not lost:
        return say("The loss fell, and the other pictures get the answers that they had.")
    return say_count(
        "The loss fell, but {count} of {others} other pictures gets another answer now.",
        "The loss fell, but {count} of {others} other pictures get another answer now.",
        lost,
        others=len(step.others),
    )


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    step = step_of(scene, options)
    target = int(options.get(CLASS, "") or classes_to_teach(scene)[0])
    return {
        "label": step.before.name(target),
        "rate": options["rate"],
        "before": number(step.loss_before),
        "after": number(step.loss_after),
        "chance": percent(float(step.before.chances[target])),
        "after_chance": percent(float(step.after.chances[target])),
        "length": number(step.norm),
        "others": len(step.others),
        "kept": step.kept,
        "verdict": verdict(step),
    }


PART = Part(
    name="sgd-step",
    sentence=mark(
        "One step of gradient descent on the image, with a class to teach and a learning rate to "
        "choose: loss, classes and first kernels before and after it."
    ),
    options=(Option("rate", "0.001", mark("The learning rate at first."), choice(RATES)),),
    facts=_facts,
)
