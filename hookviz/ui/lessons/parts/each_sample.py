"""Show samples, each with its likeliest class."""

from collections.abc import Mapping

from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.ui.lessons.figures import CHOICES, UNKNOWN, show_verdicts, verdicts

_SURE = 0.5


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    each_verdict = verdicts(scene, options["pictures"])
    return {
        "pictures": len(each_verdict),
        "sure": sum(float(each.scores.chances.max()) > _SURE for each in each_verdict),
        "classes": len(each_verdict[0].scores.scores) if each_verdict else 0,
    }


PART = Part(
    name="each-sample",
    sentence="Samples with the class that the network finds likeliest in each.",
    options=(
        Option(
            "pictures",
            UNKNOWN,
            "mixed photographs and drawings, or those unknown to the network.",
            choice(CHOICES),
        ),
    ),
    facts=_facts,
)


def show(scene: LessonScene, options: Options, _key: str) -> None:
    """Draw them side by side."""
    show_verdicts(verdicts(scene, options["pictures"]))
