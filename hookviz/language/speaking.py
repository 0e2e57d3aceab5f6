"""Keep which language is spoken: English, unless whoever is served chose another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hookviz.language.catalogs import ENGLISH

_spoken: ContextVar[str | None] = ContextVar("language", default=None)
_askers: list[Callable[[], str | None]] = []


def current() -> str:
    """Return the language that this thread or task speaks, such as ``"zh_CN"``."""
    spoken = _spoken.get()
    if spoken is not None:
        return spoken
    for ask in _askers:
        asked = ask()
        if asked is not None:
            _spoken.set(asked)
            return asked
    return ENGLISH


def speak(language: str) -> None:
    """Set the language of this thread or task from here on."""
    _spoken.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Set the language for the block.

    >>> with speaking("zh_CN"):
    ...     current()
    'zh_CN'
    >>> current()
    'en'
    """
    token = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(token)


def ask_where_silent(ask: Callable[[], str | None]) -> None:
    """Let `ask` name the language of a thread that has none set; None where it knows none."""
    _askers.append(ask)
