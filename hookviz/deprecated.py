"""Keep a renamed public name working for one version, with a `DeprecationWarning` for each use.

Imports nothing of HookViz, so that every package can rename its keywords and attributes with it.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

REMOVED_IN = "2.0"
"""The version of HookViz without the old names."""

T = TypeVar("T", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, stacklevel: int = 2) -> None:
    """Warn that `old` is now called `new`, at the line that used it.

    Args:
        old: as a person writes it, such as ``"Atlas.excites"``.
        new: likewise.
        stacklevel: as for `warnings.warn`: 2 for the caller of whoever calls this.
    """
    text = f"{old} is now called {new}; the old name goes in HookViz {REMOVED_IN}."
    warnings.warn(text, DeprecationWarning, stacklevel + 1)


def renamed_keyword(old: str, new: str) -> Callable[[T], T]:
    """Decorate a function, or a dataclass, that still takes the keyword argument `old` for `new`.

    Raises:
        TypeError: a call gives both.
    """

    def decorate(target: T) -> T:
        if isinstance(target, type):
            target.__init__ = takes_both(target.__init__, target.__name__)  # type: ignore[misc]
            return target
        return takes_both(target, target.__name__)

    def takes_both(function: T, name: str) -> T:
        @wraps(function)
        def with_old_keyword(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(f"{name}() takes {new}, or its old name {old}, and not both")
                warn_renamed(f"{name}({old}=…)", f"{new}=")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return with_old_keyword  # type: ignore[return-value]

    return decorate


class RenamedAttribute:
    """The old name of an attribute or method, which gives what is called `new` now.

    >>> class Atlas:
    ...     excites = RenamedAttribute("top_activations")
    """

    def __init__(self, new: str) -> None:
        self._old, self._new = "", new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object, owner: type) -> Any:
        warn_renamed(f"{owner.__name__}.{self._old}", self._new)
        return getattr(owner if instance is None else instance, self._new)
