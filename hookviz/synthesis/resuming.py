"""An ascent that goes on where one of equal arguments was ended, by what a session kept of it."""

from collections.abc import Callable, Hashable

from hookviz.capturing.cache import ByteCache
from hookviz.synthesis.ascent import Ascent, Saved


def run_resumed(
    ascent: Ascent,
    steps: int,
    cache: ByteCache | None,
    key: Hashable,
    after: Callable[[Ascent], object],
) -> None:
    """Run to `steps` in all, from where the session's last run of the same was ended.

    What is kept is a copy: a later run with fewer steps begins anew, to the same pictures.

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
    try:
        ascent.run(steps, after)
    finally:
        if cache is not None and ascent.steps:
            saved = ascent.saved()
            cache.put(key, saved, saved.nbytes)
