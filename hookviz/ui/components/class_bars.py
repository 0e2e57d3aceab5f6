"""Show the bars of a class: what its teacher sees of it, and what who follows does."""

from collections.abc import Callable, Mapping
from typing import Any

from hookviz.ui.components.files import mount


def follower_bar(facts: Mapping[str, Any], on_over: Callable[[str], None]) -> None:
    """Show the bar of who follows a class.

    Args:
        facts: where it is (``path``, ``code``, ``token``), what of the link is nobody else's
            (``ofOne``), and the words.
        on_over: gets why this page follows no more: ``left``, ``ended``, ``elsewhere``,
            ``unknown``; anybody can send anything.
    """
    files = {"js": "class_follower.js", "css": "class_bar.css"}
    mount("follower", "hv-follower", facts, files=files, over=lambda sent: on_over(str(sent)))


def teacher_bar(
    facts: Mapping[str, Any],
    on_over: Callable[[str], None],
    on_taken: Callable[[str], None],
    on_next: Callable[[], None],
) -> None:
    """Show the bar of who teaches: the shared link, how many follow, what they answer.

    Args:
        facts: where it is (``path``, ``code``, ``token``, which is empty where the session does
            not know it), ``shown``, the ``language`` of numbers, and the words.
        on_over: as of `follower_bar`.
        on_taken: gets the token that the browser has kept.
        on_next: called for the next channel of a game.
    """
    mount(
        *("teacher", "hv-teacher", facts),
        files={"js": "class_teacher.js", "css": "class_bar.css"},
        over=lambda sent: on_over(str(sent)),
        taken=lambda sent: on_taken(str(sent)),
        next=lambda _sent: on_next(),
    )
