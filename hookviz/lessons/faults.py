"""What is said of a lesson's file that can't be used."""

from collections.abc import Iterable
from pathlib import Path

from hookviz.errors import LessonError, nearest_names, shorten
from hookviz.language.saying import say


def fault(file: Path, line: int, what: str) -> LessonError:
    """The error for what is wrong at a line of a file, said in a sentence."""
    return LessonError(say("{file}, line {line}: {fault}", file=file.name, line=line, fault=what))


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence with the name that is most like `name`, else with all that there are."""
    names = tuple(known)
    near = nearest_names(name, names, count=1)
    if near:
        return say("Did you mean {name!r}?", name=near[0])
    return say("There are: {names}.", names=shorten(", ".join(names), 300)) if names else ""
