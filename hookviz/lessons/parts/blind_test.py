"""Show maps one by one, to be told apart: of the trained network, or of random weights.

Which maps they are follows from the network and the image, so that a page that is loaded again and
all screens of a class have the same ones.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np

from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.parts.untrained import TrainedAndUntrained, trained_and_untrained
from hookviz.types import Activation
from hookviz.wording import percent

MAPS = 10
_LEAST_OF_EITHER = 3  # so that nobody can count on as many of both
TRAINED, UNTRAINED = "t", "u"
"""An answer in the link, a letter for each map."""
ANSWERS, ROUND = "answers", "round"
"""Among the options what a learner answered, and which ten maps; a lesson's file has neither."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A map of the test: a channel of either network."""

    trained: bool
    channel: int


@dataclass(frozen=True, eq=False, slots=True)
class BlindTest:
    """The maps of a test in their order, and where they come from."""

    pair: TrainedAndUntrained
    maps: tuple[Shown, ...]

    def right(self, answers: str) -> int:
        """Return how many of the answers, the first ones, are right."""
        given = zip(self.maps, answers, strict=False)
        return sum(shown.trained == (answer == TRAINED) for shown, answer in given)


def blind_test(scene: LessonScene, options: Options, number: int = 1) -> BlindTest:
    """Draw the maps of the test with that number, of channels that do not have one value alone.

    Raises:
        ModelError: the weights are random already.
    """
    pair = trained_and_untrained(scene, {"layer": options["layer"]})
    draw = random.Random(f"{scene.model.digest} {scene.model_input.digest} {number}")  # noqa: S311
    trained, untrained = _varying(pair.trained), _varying(pair.untrained)
    count = min(MAPS, 2 * min(len(trained), len(untrained)))
    least = min(_LEAST_OF_EITHER, count // 2)
    of_trained = draw.randint(max(least, count - len(untrained)), min(count - least, len(trained)))
    maps = [Shown(True, channel) for channel in draw.sample(trained, of_trained)]
    maps += [Shown(False, channel) for channel in draw.sample(untrained, count - of_trained)]
    draw.shuffle(maps)
    return BlindTest(pair, tuple(maps))


def answers_of(text: str, count: int) -> str:
    """Return the answers in a link as far as they are some, at most so many."""
    found = re.match(f"[{TRAINED}{UNTRAINED}]*", text)
    return found[0][:count] if found else ""


def by_chance(right: int, count: int) -> float:
    """Return how often a coin has so many of `count` answers right, or more."""
    return float(sum(comb(count, hits) for hits in range(right, count + 1)) / 2**count)


def standing(test: BlindTest, answers: str) -> str:
    """Return in a sentence or two how far somebody is, and at the end what the score is worth."""
    count, right = len(test.maps), test.right(answers)
    if len(answers) < count:
        return say("{answered} of {count} answered.", answered=len(answers), count=count)
    return say(
        "{right} of {count} right. A tossed coin has {right} or more in {share} of all tests.",
        right=right,
        count=count,
        share=percent(by_chance(right, count)),
    )


def _varying(maps: Activation) -> list[int]:
    rows = maps.values.flatten(1)
    return [int(at) for at in np.flatnonzero((rows.amax(1) > rows.amin(1)).numpy())]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    test = blind_test(scene, options, int(options.get(ROUND, "1")))
    answers = answers_of(options.get(ANSWERS, ""), len(test.maps))
    return {
        "layer": test.pair.layer.name,
        "count": len(test.maps),
        "answered": len(answers),
        "standing": standing(test, answers),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, options["layer"]).name}


PART = Part(
    name="blind-test",
    sentence=mark(
        "Ten maps, one by one: of the trained network, or of the same with random weights? Each "
        "answer shows which it was, and the end how many were right."
    ),
    options=(Option("layer", "first", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)
