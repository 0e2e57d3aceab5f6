"""Define the errors that a person can cause, as one tree with `HookVizError` at the root.

Every message names what was given, what is wrong with it, and the nearest thing that works, so
the screen and the command line can show it as it stands. Of HookViz it imports
`hookviz.language` alone, in which the messages are said. `Cancelled` is outside the tree.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from hookviz.language.saying import joined, say


class HookVizError(Exception):
    """Raised when something a person gave can't be used; ``str(error)`` is fit for the screen."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle class, message and attributes: the constructor may take other arguments."""
        return _again, (type(self), self.args, dict(vars(self)))


class Cancelled(BaseException):
    """Ends work that its caller no longer wants; no ``except Exception`` on its way catches it."""


class UnknownNameError(HookVizError):
    """Raised for a name that is not among those that exist.

    Attributes:
        kind: what was looked for, for example ``"layer"``.
        name: the name as it was given.
        nearest: up to three existing names that resemble it, best first.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name = str(name)
        self.nearest = nearest_names(name, known)
        hint = say(" Did you mean {names}?", names=_either(self.nearest)) if self.nearest else ""
        super().__init__(
            say(
                "There is no {kind} called {name!r}.{hint}",
                kind=kind,
                name=shorten(name),
                hint=hint,
            )
        )


class UnknownModelError(UnknownNameError):
    """No model of that name is in the catalog."""


class UnknownLayerError(UnknownNameError):
    """The model has no layer, call or output of that name."""


class ImageError(HookVizError):
    """The bytes given can't be read as an image within the limits."""


class ModelError(HookVizError):
    """The model can't be loaded, or can't take this input."""


class WeightsError(ModelError):
    """The weights asked for can't be had or don't fit the architecture."""


class SettingError(HookVizError):
    """An option or a ``HOOKVIZ_*`` environment variable has a value that means nothing."""


class LessonError(HookVizError):
    """A lesson's file can't be used; the message names the file and the line."""


class ClassroomError(HookVizError):
    """A class can't be begun, joined or asked so."""


class EngineError(HookVizError):
    """What was to carry out a job can't: no cluster, no worker, or a node that lacks something."""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return up to `count` of the `known` names that resemble `name`, best first.

    Never `name` itself, which is no help to whoever has just tried it.
    """
    by_folded = {candidate.casefold(): candidate for candidate in known if candidate != name}
    folded = name.casefold()[:200]  # difflib is quadratic, and a name can come from a URL
    close = get_close_matches(folded, by_folded, n=count, cutoff=0.5)
    inside = [folded_name for folded_name in by_folded if folded and folded in folded_name]
    return tuple(by_folded[match] for match in dict.fromkeys([*close, *inside]))[:count]


def one_of(kind: str, given: object, known: Iterable[str]) -> str:
    """Return `given` if it is among the `known` names; refuse it otherwise.

    Raises:
        SettingError: it is not; the message has the nearest names and all choices.
    """
    names = tuple(known)
    if isinstance(given, str) and given in names:
        return given
    near = nearest_names(str(given), names, count=1)
    hint = say(" Did you mean {near!r}?", near=near[0]) if near else ""
    raise SettingError(
        say(
            "There is no {kind} called {name!r}.{hint} Choose from {choices}.",
            kind=kind,
            name=str(given)[:80],
            hint=hint,
            choices=joined(names),
        )
    )


def shorten(text: str, limit: int = 80) -> str:
    """Return `text` in at most `limit` characters, its middle left out where it is longer."""
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _either(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return (
        quoted[0]
        if len(quoted) == 1
        else say("{names} or {last}", names=joined(quoted[:-1]), last=quoted[-1])
    )


def _again(
    kind: type[HookVizError], args: tuple[Any, ...], attributes: Mapping[str, Any]
) -> HookVizError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error
