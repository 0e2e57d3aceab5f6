"""What an option of a live part can be checked for: each check gives what is wrong, or nothing."""

import re
from collections.abc import Callable, Iterable

from hookviz.language.saying import say
from hookviz.lessons.faults import nearest

Check = Callable[[str], str]


def whole(least: int, most: int) -> Check:
    """A whole number from `least` to `most`."""

    def check(value: str) -> str:
        if re.fullmatch(r"-?\d{1,9}", value, re.ASCII) and least <= int(value) <= most:
            return ""
        return say(
            "A whole number from {low} to {high} works here.", low=str(least), high=str(most)
        )

    return check


def choice(names: Iterable[str]) -> Check:
    """One of the names."""
    known = tuple(names)
    return lambda value: "" if value in known else nearest(value, known)
