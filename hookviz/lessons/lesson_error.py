"""Say what is wrong with a lesson's file, and the nearest name that works."""

from collections.abc import Iterable
from pathlib import Path

from hookviz.errors import LessonError, nearest_names, shorten
from hookviz.language.saying import say


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
