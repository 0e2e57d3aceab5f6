"""Show what A's network saw beside what B's did: the picture each was given, and its classes."""

from typing import Any

from hookviz.drawing.pictures import small_png
from hookviz.errors import HookVizError
from hookviz.explorer.subject import Subject
from hookviz.language.speaking import current
from hookviz.markup import data_url
from hookviz.types import Capture

_SIDE = 72  # pixels, twice what it takes on the screen
_CLASSES = 2


def both_seen(subject: Subject, capture: Capture) -> list[dict[str, Any]]:
    """Return of A, which is pinned, and of B what the network saw and took it for.

    Args:
        subject: what is looked at.
        capture: the run of B.
    """
    pinned = subject.pinned
    if pinned is None or pinned.run is None:
        return []
    key = ("seen-of-a", pinned.link, pinned.digest, current())
    a: dict[str, Any] | None = subject.cache.get(key)
    if a is None:
        try:
            a = _seen("A", pinned.run())
        except HookVizError:  # which is said where its maps are asked for
            return []
        subject.cache.put(key, a, len(str(a)))
    return [a, _seen("B", capture)]


def _seen(name: str, capture: Capture) -> dict[str, Any]:
    """Describe one side; its picture is empty where the network's input is none."""
    picture = capture.model_input.picture
    small = "" if picture is None else data_url(small_png(picture, _SIDE))
    return {
        "name": name,
        "picture": small,
        "classes": [f"{each.name} {each.text}" for each in capture.top(_CLASSES)],
    }
