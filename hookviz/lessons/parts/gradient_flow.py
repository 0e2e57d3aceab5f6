"""Follow a class score's gradient back through the layers, clamped by a hook or not."""

from collections.abc import Mapping

from hookviz.language.saying import mark
from hookviz.lessons.gradient_maps import Passed, layers_on_the_way, way_back
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import own_scores
from hookviz.wording import number

SHARES = ("50", "20", "10", "5", "2", "1")
"""Limits, in percent of the largest number that comes to the hook."""
CLASS, AT = "class", "at"
"""Among the options the class and the layer whose hook clamps; in no file."""


def target_of(scene: LessonScene, options: Options) -> int:
    """Return the class whose score it is the gradient of."""
    return int(options.get(CLASS, "") or own_scores(scene).best)


def hooked_layer(scene: LessonScene, options: Options) -> str:
    """Return the name of the layer whose hook clamps: the last but one, if nothing is chosen."""
    names = [layer.name for layer in layers_on_the_way(scene)]
    chosen = options.get(AT, "")
    return chosen if chosen in names else names[max(0, len(names) - 2)]


def both_ways(scene: LessonScene, options: Options) -> tuple[list[Passed], list[Passed], float]:
    """Return the way back as it is, and with the hook's clamp, and the limit of that."""
    target, at = target_of(scene, options), hooked_layer(scene, options)
    plain = way_back(scene, target)
    came = next((each.came for each in plain if each.layer == at), 0.0)
    limit = came * int(options["limit"]) / 100
    return plain, way_back(scene, target, at, limit), limit


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    plain, clamped, limit = both_ways(scene, options)
    at = hooked_layer(scene, options)
    here = next(each for each in plain if each.layer == at)
    cut = (abs(here.values) > limit).mean() if limit else 0.0
    return {
        "label": own_scores(scene).name(target_of(scene, options)),
        "hooked": at,
        "last": plain[0].layer,
        "first": plain[-2].layer,
        "came": number(here.came),
        "lets": number(limit),
        "percent": int(options["limit"]),
        "cut": float(cut),
        "whole": number(plain[-1].norm),
        "cropped": number(clamped[-1].norm),
        "at_last": number(plain[0].norm),
        "at_first": number(plain[-2].norm),
    }


PART = Part(
    name="gradient-flow",
    sentence=mark(
        "The gradient of a class's score as pictures, from the last layer back to the image, with "
        "its length at each, as it is or clamped by a hook at a layer of the learner's choice."
    ),
    options=(
        Option(
            "clamp",
            "no",
            mark("Whether the hook clamps at first: yes or no."),
            choice(("yes", "no")),
        ),
        Option(
            "limit",
            "10",
            mark("The limit at first, in percent of the largest number that comes."),
            choice(SHARES),
        ),
    ),
    facts=_facts,
)
