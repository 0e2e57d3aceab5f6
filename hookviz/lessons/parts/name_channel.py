"""Guess what a channel answers to by the parts of images that excite it most: a game of rounds."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.reading import PHOTOGRAPH, atlas_of
from hookviz.errors import HookVizError
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.models.bundled import BUNDLED

GUESSES = "guesses"
"""Among the options what a learner guessed, as `guesses_of` reads it; a lesson's file has none."""

_ROUNDS = 6
_CHOICES = 4
_LEAST_SHARE = 0.5  # of a channel's strongest images that are of one class


@dataclass(frozen=True, slots=True)
class Round:
    """A channel whose strongest images are mostly of one class, and what can be picked.

    Attributes:
        layer: of the channel.
        channel: its number.
        names: classes to pick out of, the right one among them.
        right: which of them is the class.
        agree: how many of its strongest images are of that class.
        among: how many strongest images are known.
    """

    layer: str
    channel: int
    names: tuple[str, ...]
    right: int
    agree: int
    among: int

    def is_right(self, guess: str) -> bool:
        """Return whether a guess is the class: its place among the names, or its name typed."""
        if guess.isdecimal():
            return int(guess) == self.right
        name = self.names[self.right]
        return guess.strip().casefold() in {name.casefold(), label_of(name).casefold()}


def rounds_of(scene: LessonScene) -> tuple[Round, ...]:
    """Return the rounds for a model; none where there is no atlas of it, or it has no classes."""
    atlas = atlas_of(scene.model)
    return () if atlas is None or len(atlas.classes) < _CHOICES else _rounds(atlas)


@lru_cache(maxsize=8)
def _rounds(atlas: Atlas) -> tuple[Round, ...]:
    """Make a round of each class that a channel answers to most clearly, and keep the clearest."""
    answers = (
        (name, answer)
        for name in atlas.classes
        if name != PHOTOGRAPH
        for answer in atlas.channels_of_class(name, 1)
    )
    found = sorted(
        (
            (answer.share, answer.contrast, name, answer.layer, answer.channel)
            for name, answer in answers
            if answer.share >= _LEAST_SHARE
        ),
        reverse=True,
    )
    made = (_round(atlas, name, layer, channel) for *_, name, layer, channel in found)
    return tuple(each for each in made if each is not None)[:_ROUNDS]


def _round(atlas: Atlas, name: str, layer: str, channel: int) -> Round | None:
    """Return the round of a channel; None where it answers to other classes as much."""
    try:
        top = atlas.top_activations(layer, channel)
    except HookVizError:
        return None
    counts = Counter(each.image.category for each in top)
    others = sorted(set(atlas.classes) - set(counts) - {PHOTOGRAPH})
    if counts[name] != max(counts.values()) or len(others) < _CHOICES - 1:
        return None
    chance = random.Random(f"{layer} {channel}")  # noqa: S311 - the same choices for everybody
    names = [name, *chance.sample(others, _CHOICES - 1)]
    chance.shuffle(names)
    return Round(layer, channel, tuple(names), names.index(name), counts[name], len(top))


def label_of(name: str) -> str:
    """Return what a class of an atlas is called in the language that is spoken."""
    names = BUNDLED["shapesnet"].categories
    return class_label(names.index(name), names) if name in names else name


def guesses_of(text: str, found: tuple[Round, ...]) -> dict[int, str]:
    """Read what was guessed, such as ``"0=2;1=a wheel"``, by the round; the rest is left out."""
    pairs = (each.partition("=") for each in text.split(";"))
    return {
        int(number): guess
        for number, _, guess in pairs
        if guess and number.isdecimal() and int(number) < len(found)
    }


def score(guesses: Mapping[int, str], found: tuple[Round, ...]) -> int:
    """Return how many guesses are right."""
    return sum(found[at].is_right(guess) for at, guess in guesses.items())


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = rounds_of(scene)
    guesses = guesses_of(options.get(GUESSES, ""), found)
    atlas = atlas_of(scene.model)
    told = say("Nothing is guessed yet.")
    if guesses:
        told = say(
            "{right} of {guessed} guesses are right so far.",
            right=score(guesses, found),
            guessed=len(guesses),
        )
    return {
        "rounds": len(found),
        "images": 0 if atlas is None else atlas.counts["tallied"],
        "so_far": told,
    }


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    found = rounds_of(scene)
    return {"layer": found[0].layer, "channel": str(found[0].channel)} if found else {}


PART = Part(
    name="name-channel",
    sentence="The parts of images that excite a channel most; the learner picks out of four what "
    "it is about, or types it, and sees how many of the strongest images are of that class.",
    facts=_facts,
    link=_link,
)
