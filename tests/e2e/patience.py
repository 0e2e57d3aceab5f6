"""How often Playwright looks: it looks the more seldom the longer it may wait.

With half a minute to wait it soon looks twice a second, and what was there after 0.3 s is seen
after 0.8 s. So each expectation is asked with little time first, in which it looks twenty times a
second, then with more, and at last with all.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from playwright.sync_api import (  # type: ignore[attr-defined]  # the last two: `expect` gives them
    Error,
    Locator,
    LocatorAssertions,
    PageAssertions,
)

_FIRST = (400, 2_400)  # milliseconds; it looks every 50 and every 100
_BY_DEFAULT = {"wait_for": 30_000}
_EXPECTED = 20_000
"""A busy machine is slow, not wrong."""


def look_often() -> None:
    """Let what is expected be seen soon after it holds, and be clicked soon after it is there."""
    for kind in (LocatorAssertions, PageAssertions):
        for name in vars(kind):
            if name.startswith(("to_", "not_to_")):
                setattr(kind, name, _often(getattr(kind, name)))
    Locator.wait_for = _often(Locator.wait_for)  # type: ignore[method-assign]
    for name in ("click", "fill"):
        setattr(Locator, name, _once_there(getattr(Locator, name)))


def _often(wait: Callable[..., None]) -> Callable[..., None]:
    @wraps(wait)
    def look(self: Any, *given: Any, timeout: float | None = None, **options: Any) -> None:
        __tracebackhide__ = True
        most = _BY_DEFAULT.get(wait.__name__, _EXPECTED) if timeout is None else timeout
        for patience in _FIRST:
            if patience < most:
                try:
                    return wait(self, *given, timeout=patience, **options)
                except (AssertionError, Error):
                    continue  # not yet
        return wait(self, *given, timeout=most, **options)

    return look


def _once_there(act: Callable[..., None]) -> Callable[..., None]:
    @wraps(act)
    def wait_and_act(self: Locator, *given: Any, **options: Any) -> None:
        __tracebackhide__ = True
        with suppress(Error):  # which it says itself
            self.wait_for(timeout=_FIRST[-1])
        return act(self, *given, **options)

    return wait_and_act
