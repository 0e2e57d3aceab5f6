"""A climb that is watched: told how far it is after every step, and shown a few times a second."""

import time
from collections.abc import Callable

from hookviz.hooking.forward_pass import Telling
from hookviz.lenses.contract.lens import Subject
from hookviz.synthesis.ascent import Ascent

_EVERY = 0.12  # seconds between two pictures, which take time to make


def watched(
    subject: Subject,
    steps: int,
    show: Callable[[Ascent], object],
    telling: Telling | None = None,
) -> Callable[[Ascent], None]:
    """What an ascent calls after each of `steps`.

    Args:
        subject: whose progress is told.
        steps: of the ascent, in all.
        show: hands over what there is; called for the first step, and some times a second.
        telling: where the ascent is one step of several.
    """
    whole = Telling(subject.progress)
    due = 0.0

    def after(now: Ascent) -> None:
        nonlocal due
        if now.steps < steps and time.monotonic() >= due:
            show(now)
            due = time.monotonic() + _EVERY
        if telling is None:
            whole.share(now.steps / steps)
        else:
            telling.within(now.steps / steps)

    return after
