"""Define a live part of a lesson, its options and their checks, and the scene it looks at."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hookviz.errors import LessonError, nearest_names, shorten
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Subject
from hookviz.types import InputImage

Fact = str | int | float
"""What the text of a step can name in braces; a number may have a format: ``{mean:.2f}``."""

Computed = TypeVar("Computed")
Check = Callable[[str], str]
"""Gives what is wrong with the value of an option, in a sentence, or an empty string."""


class DottedFacts(dict[str, Fact]):
    """Facts by name in which dots stand for those that can't be computed."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> Fact:
        return "…"


@dataclass(frozen=True, eq=False)
class LessonScene(Subject):
    """The model and the input that all live parts of a lesson look at, as lenses do.

    Attributes:
        image: the image that the input was made from.
        size: the side of the input that was asked for; None for the model's own.
        whole: whether the input is the whole image.
    """

    image: InputImage
    size: int | None = None
    whole: bool = False

    def cached(
        self,
        key: tuple[Hashable, ...],
        compute: Callable[[], Computed],
        nbytes: int | Callable[[Computed], int],
    ) -> Computed:
        """Return what `compute` gives, computed once per model and input while there is room.

        Args:
            key: what it is, among all that is computed of the same model and input.
            compute: computes it.
            nbytes: about how many bytes it takes, or what tells that of what was computed.
        """
        if self.cache is None:
            return compute()
        full_key = ("lesson", self.model.cache_key, self.model_input.digest, *key)
        value: Computed | None = self.cache.get(full_key)
        if value is None:
            value = compute()
            self.cache.put(full_key, value, nbytes(value) if callable(nbytes) else nbytes)
        return value


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of a live part, which a lesson's file can give a value.

    Attributes:
        name: as the file writes it before the colon.
        default: what it is where the file says nothing; None where it must be set.
        help: one sentence for whoever writes a lesson.
        check: gives what is wrong with a value, in words, or nothing.
    """

    name: str
    default: str | None
    help: str
    check: Check = field(default=lambda _value: "")


Options = Mapping[str, str]


def whole_number(least: int, most: int) -> Check:
    """Return a check that a value is a whole number from `least` to `most`."""

    def check(value: str) -> str:
        if re.fullmatch(r"-?\d{1,9}", value, re.ASCII) and least <= int(value) <= most:
            return ""
        return say(
            "A whole number from {low} to {high} works here.", low=str(least), high=str(most)
        )

    return check


def choice(names: Iterable[str]) -> Check:
    """Return a check that a value is one of the names."""
    known = tuple(names)
    return lambda value: "" if value in known else did_you_mean(value, known)


def _no_facts(_scene: LessonScene, _options: Options) -> dict[str, Fact]:
    return {}


def _fits_all(_scene: LessonScene) -> bool:
    return True


def _no_link(_scene: LessonScene, _options: Options) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of live part, declared as ``PART`` in a file of `hookviz.ui.lessons.parts`.

    Attributes:
        name: as a lesson's file writes it after ``live``.
        sentence: what one sees and can do, for whoever writes a lesson.
        options: what the file can set.
        facts: what the text of the same step can name in braces, computed, never typed.
        link: the page's link of what it shows, as the parameters that differ from the lesson's:
            ``layer``, ``channel``, ``cell``, ``lens`` and the like.
        fits: whether what a lesson says of it holds for the scene's network; where it does not,
            the lesson runs on its own network.
    """

    name: str
    sentence: str
    options: tuple[Option, ...] = ()
    facts: Callable[[LessonScene, Options], Mapping[str, Fact]] = _no_facts
    link: Callable[[LessonScene, Options], Mapping[str, str]] = _no_link
    fits: Callable[[LessonScene], bool] = _fits_all


def lesson_error(file: Path, line: int, message: str) -> LessonError:
    """Return the error for what is wrong at a line of a file, `message` being a sentence."""
    return LessonError(
        say("{file}, line {line}: {fault}", file=file.name, line=line, fault=message)
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the name that is most like `name`, else with all known ones."""
    names = tuple(known)
    similar = nearest_names(name, names, count=1)
    if similar:
        return say("Did you mean {name!r}?", name=similar[0])
    return say("There are: {names}.", names=shorten(", ".join(names), 300)) if names else ""
