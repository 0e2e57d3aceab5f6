"""Resume an optimization where one of equal arguments was ended, from a session's cache."""

import time
from collections.abc import Callable, Hashable

from hookviz.capturing.cache import ByteCache
from hookviz.synthesis.optimizing import Optimization, OptimizationState

_EVERY = 0.2  # seconds between two copies


def run_resumed(
    optimization: Optimization,
    steps: int,
    cache: ByteCache | None,
    key: Hashable,
    after: Callable[[Optimization], object],
) -> None:
    """Run to `steps` in all, from where the session's last run of the same ended.

    A copy is kept: a later run with fewer steps begins anew, to the same pictures. It is kept
    during the run, too: a page's next run can begin before this one has ended.

    Args:
        optimization: without a step yet.
        steps: in all.
        cache: the session's, if any.
        key: equal for optimizations of equal arguments alone.
        after: called after every step; what it raises ends the run.
    """
    kept: OptimizationState | None = None if cache is None else cache.get(key)
    if kept is not None and kept.steps <= steps:
        optimization.restore(kept)
    due = 0.0

    def keep() -> None:
        if cache is not None and optimization.steps:
            state = optimization.state()
            cache.put(key, state, state.nbytes)

    def keep_and(now: Optimization) -> None:
        nonlocal due
        if time.monotonic() >= due:
            keep()
            due = time.monotonic() + _EVERY
        after(now)

    try:
        optimization.run(steps, keep_and)
    finally:
        keep()
