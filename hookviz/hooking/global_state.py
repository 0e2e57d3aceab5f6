"""Restore what a person's code keeps outside of the network: module-level and class caches.

A mask kept by its shape in a dictionary, or under ``lru_cache``, is there for every instance of the
class. What a pass of ours leaves in it would be found by the person's own network, so it is put
back. Only what the network's code refers to is looked at: all else may change at the same time
for reasons of its own.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from torch import nn

from hookviz.hooking.copies import held_by, insides, names_in, unwrapped
from hookviz.hooking.network_state import ByNetwork
from hookviz.hooking.purity import is_known_code, is_library

_DICTIONARIES = (dict, WeakKeyDictionary, WeakValueDictionary)
_CONTAINERS = (*_DICTIONARIES, list, set, deque, WeakSet)
_MOST_FOLLOWED = 20_000  # classes and functions that are followed
_DEEPEST = 3  # containers in containers that are looked at

_references: MutableMapping[nn.Module, "_References"] = ByNetwork()
_snapshots: dict[int, "_Snapshot"] = {}
_lock = threading.Lock()


@contextmanager
def global_state_restored(network: nn.Module) -> Iterator[None]:
    """Restore the global state that the network's code refers to at the end of the block.

    Where blocks overlap, as those of several threads do, the last one to end puts back what the
    first one found.
    """
    if is_known_code(network):
        yield
        return
    with _lock:
        references = _references.get(network)
    if references is None:
        references = _References(network)
        with _lock:
            _references[network] = references
    containers = list(references.containers())
    with _lock:
        for container in containers:
            if id(container) not in _snapshots:
                _snapshots[id(container)] = _Snapshot(container)
            _snapshots[id(container)].blocks += 1
    try:
        yield
    finally:
        with _lock:
            for container in containers:
                snapshot = _snapshots[id(container)]
                snapshot.blocks -= 1
                if not snapshot.blocks:
                    del _snapshots[id(container)]
                    snapshot.restore()


def referenced_globals(network: nn.Module) -> list[Any]:
    """Return the globals and class attributes that the network's code refers to.

    Nothing for code that is known to keep nothing there.
    """
    return [] if is_known_code(network) else _References(network).values()


class _References:
    """Names in Python modules, and classes, that the code of a network refers to."""

    def __init__(self, network: nn.Module) -> None:
        self._named: dict[tuple[int, str], MutableMapping[str, Any]] = {}
        self._classes: dict[type, None] = {}
        waiting = deque[Any](map(type, network.modules()))
        waiting.extend(held_by(network, {}))
        seen: set[int] = set()
        while waiting and len(seen) < _MOST_FOLLOWED:
            value = unwrapped(waiting.popleft())
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend(self._referred(value))

    def containers(self) -> Iterator[Any]:
        """Yield the containers and caches that are there now, each once, and the classes."""
        seen: set[int] = set()
        for value in self.values():
            for container in _containers_in(value):
                if id(container) not in seen:
                    seen.add(id(container))
                    yield container
        yield from self._classes

    def values(self) -> list[Any]:
        """Return what the names and the class attributes hold now."""
        named = [space[name] for (_, name), space in self._named.items() if name in space]
        return named + [part for base in self._classes for part in vars(base).values()]

    def _referred(self, value: Any) -> Iterator[Any]:
        """Yield what a class or a function refers to, and note where that is kept."""
        if isinstance(value, type):
            for base in value.__mro__:
                if not _keeps_nothing(base.__module__):
                    self._classes[base] = None
                    for part in list(vars(base).values()):
                        yield from (part.fget, part.fset) if isinstance(part, property) else (part,)
        elif isinstance(value, FunctionType) and not _keeps_nothing(str(value.__module__)):
            yield from insides(value)
            yield from self._named_in(value.__globals__, names_in(value.__code__))

    def _named_in(self, space: MutableMapping[str, Any], names: set[str]) -> Iterator[Any]:
        for name in names.intersection(space):
            value = space[name]
            if isinstance(value, ModuleType):
                if not _keeps_nothing(value.__name__):
                    inner = vars(value)
                    for shared in names.intersection(inner):
                        self._named[id(inner), shared] = inner
                        yield inner[shared]
            else:
                self._named[id(space), name] = space
                yield value


@dataclass(slots=True)
class _Snapshot:
    """Contents of a container, cache or class, and how many blocks want them back."""

    container: Any
    contents: Any
    blocks: int

    def __init__(self, container: Any) -> None:
        self.container = container
        self.contents = _contents(container)
        self.blocks = 0

    def restore(self) -> None:
        """Put the contents back where they have changed."""
        container, contents = self.container, self.contents
        if _has_same_objects(_contents(container), contents):
            return
        if isinstance(container, _lru_cache_wrapper):
            container.cache_clear()
        elif isinstance(container, type):
            for name in set(vars(container)).difference(contents):
                delattr(container, name)
            for name, value in contents.items():
                if vars(container).get(name) is not value:
                    setattr(container, name, value)
        elif isinstance(container, list):
            container[:] = contents
        else:
            container.clear()
            add: Callable[[Any], Any] = (
                container.extend if isinstance(container, deque) else container.update
            )
            add(contents)


def _contents(container: Any) -> Any:
    if isinstance(container, _lru_cache_wrapper):
        return [container.cache_info().currsize, container.cache_info().misses]
    if isinstance(container, type):
        return dict(vars(container))
    return dict(container) if isinstance(container, _DICTIONARIES) else list(container)


def _has_same_objects(now: Any, then: Any) -> bool:
    """Return whether the very same objects are in both."""
    if len(now) != len(then):
        return False
    if isinstance(now, dict):
        now, then = ([*each.keys(), *each.values()] for each in (now, then))
    return all(a is b or (isinstance(a, int) and a == b) for a, b in zip(now, then, strict=True))


def _containers_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the value if it is a container or cache, and the containers in it."""
    if isinstance(value, _lru_cache_wrapper):
        yield value
    elif isinstance(value, _CONTAINERS) and depth < _DEEPEST:
        yield value
        inside = list(value.values()) if isinstance(value, _DICTIONARIES) else list(value)
        for part in inside:
            yield from _containers_in(part, depth + 1)


def _keeps_nothing(module: str) -> bool:
    """Return whether a Python module is known to keep nothing of a pass."""
    top = module.partition(".")[0]
    return is_library(module) or top in sys.stdlib_module_names or top in ("numpy", "PIL")
