"""An ascent that goes on where one of equal arguments was ended, by what a session kept of it."""

import time
from collections.abc import Callable, Hashable

from hookviz.capturing.cache import ByteCache
from hookviz.synthesis.ascent import Ascent, Saved

_EVERY = 0.2  # seconds between two copies


def run_resumed(
    ascent: Ascent,
    steps: int,
    cache: ByteCache | None,
    key: Hashable,
    after: Callable[[Ascent], object],
) -> None:
    """Run to `steps` in all, from where the session's last run of the same was ended.

    What is kept is a copy: a later run with fewer steps begins anew, to the same pictures. It is
    kept as the run goes, too: a page's next run can begin before this one is wound up.

    Args:
        ascent: without a step yet.
        steps: in all.
        cache: the session's, if any.
        key: equal for ascents of equal arguments alone.
        after: called after every step; what it raises ends the run.
    """
    kept: Saved | None = None if cache is None else cache.get(key)
    if kept is not None and kept.steps <= steps:
        ascent.restore(kept)
    due = 0.0

    def keep() -> None:
        if cache is not None and ascent.steps:
            saved = ascent.saved()
            cache.put(key, saved, saved.nbytes)

    def keep_and(now: Ascent) -> None:
        nonlocal due
        if time.monotonic() >= due:
            keep()
            due = time.monotonic() + _EVERY
        after(now)

    try:
        ascent.run(steps, keep_and)
    finally:
        keep()
