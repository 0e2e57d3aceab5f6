"""What a network counts outside of itself, over all its copies and passes."""

from collections.abc import Iterator
from typing import Any


class Tally:
    """Like a list; one of a class or a Python module would be as it was after each pass."""

    def __init__(self) -> None:
        self._every: list[Any] = []

    def append(self, what: Any) -> None:
        """Count one more."""
        self._every.append(what)

    def clear(self) -> None:
        """Begin anew."""
        self._every.clear()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)

    def __eq__(self, other: object) -> bool:
        return self._every == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._every)
