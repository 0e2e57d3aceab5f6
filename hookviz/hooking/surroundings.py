"""What a person's code keeps outside of the network: caches of its Python module and its classes.

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
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.hooking.copies import held_by, insides, names_in, unwrapped
from hookviz.hooking.purity import is_known_code, is_library

_DICTIONARIES = (dict, WeakKeyDictionary, WeakValueDictionary)
_CONTAINERS = (*_DICTIONARIES, list, set, deque, WeakSet)
_MOST = 20_000  # classes and functions that are followed
_DEEPEST = 3  # containers in containers that are looked at

_places: MutableMapping[nn.Module, "_Places"] = WeakIdKeyDictionary()
_kept: dict[int, "_Kept"] = {}
_lock = threading.Lock()


@contextmanager
def surroundings_put_back(network: nn.Module) -> Iterator[None]:
    """Leave what is outside of the network as it was at the beginning of the block.

    Where blocks overlap, as those of several threads do, the last one to end puts back what the
    first one found.
    """
    if is_known_code(network):
        yield
        return
    with _lock:
        places = _places.get(network)
    if places is None:
        places = _Places(network)
        with _lock:
            _places[network] = places
    found = list(places.found())
    with _lock:
        for thing in found:
            if id(thing) not in _kept:
                _kept[id(thing)] = _Kept(thing)
            _kept[id(thing)].blocks += 1
    try:
        yield
    finally:
        with _lock:
            for thing in found:
                kept = _kept[id(thing)]
                kept.blocks -= 1
                if not kept.blocks:
                    del _kept[id(thing)]
                    kept.put_back()


def referred_to(network: nn.Module) -> list[Any]:
    """What the network's code refers to outside of it: by name, and as attributes of its classes.

    Nothing for code that is known to keep nothing there.
    """
    return [] if is_known_code(network) else _Places(network).values()


class _Places:
    """Where the code of a network keeps things: names of Python modules, attributes of classes."""

    def __init__(self, network: nn.Module) -> None:
        self._named: dict[tuple[int, str], MutableMapping[str, Any]] = {}
        self._kinds: dict[type, None] = {}
        waiting = deque[Any](map(type, network.modules()))
        waiting.extend(held_by(network, {}))
        seen: set[int] = set()
        while waiting and len(seen) < _MOST:
            value = unwrapped(waiting.popleft())
            if id(value) not in seen:
                seen.add(id(value))
                waiting.extend(self._referred(value))

    def found(self) -> Iterator[Any]:
        """The containers and caches that are there now, each once, and the classes."""
        seen: set[int] = set()
        for value in self.values():
            for thing in _things(value):
                if id(thing) not in seen:
                    seen.add(id(thing))
                    yield thing
        yield from self._kinds

    def values(self) -> list[Any]:
        """What is there now by these names, and as these attributes."""
        named = [space[name] for (_, name), space in self._named.items() if name in space]
        return named + [part for kind in self._kinds for part in vars(kind).values()]

    def _referred(self, value: Any) -> Iterator[Any]:
        """What a class or a function refers to; where that is kept is taken down."""
        if isinstance(value, type):
            for base in value.__mro__:
                if not _is_looked_past(base.__module__):
                    self._kinds[base] = None
                    for part in list(vars(base).values()):
                        yield from (part.fget, part.fset) if isinstance(part, property) else (part,)
        elif isinstance(value, FunctionType) and not _is_looked_past(str(value.__module__)):
            yield from insides(value)
            yield from self._named_in(value.__globals__, names_in(value.__code__))

    def _named_in(self, space: MutableMapping[str, Any], names: set[str]) -> Iterator[Any]:
        for name in names.intersection(space):
            value = space[name]
            if isinstance(value, ModuleType):
                if not _is_looked_past(value.__name__):
                    inner = vars(value)
                    for shared in names.intersection(inner):
                        self._named[id(inner), shared] = inner
                        yield inner[shared]
            else:
                self._named[id(space), name] = space
                yield value


@dataclass(slots=True)
class _Kept:
    """A container, a cache or a class with what was in it, and how many blocks want that back."""

    thing: Any
    contents: Any
    blocks: int

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.contents = _contents(thing)
        self.blocks = 0

    def put_back(self) -> None:
        """Bring it to what it was, where it is something else."""
        thing, contents = self.thing, self.contents
        if _alike(_contents(thing), contents):
            return
        if isinstance(thing, _lru_cache_wrapper):
            thing.cache_clear()
        elif isinstance(thing, type):
            for name in set(vars(thing)).difference(contents):
                delattr(thing, name)
            for name, value in contents.items():
                if vars(thing).get(name) is not value:
                    setattr(thing, name, value)
        elif isinstance(thing, list):
            thing[:] = contents
        else:
            thing.clear()
            add: Callable[[Any], Any] = thing.extend if isinstance(thing, deque) else thing.update
            add(contents)


def _contents(thing: Any) -> Any:
    if isinstance(thing, _lru_cache_wrapper):
        return [thing.cache_info().currsize, thing.cache_info().misses]
    if isinstance(thing, type):
        return dict(vars(thing))
    return dict(thing) if isinstance(thing, _DICTIONARIES) else list(thing)


def _alike(now: Any, then: Any) -> bool:
    """Whether the very same objects are in both."""
    if len(now) != len(then):
        return False
    if isinstance(now, dict):
        now, then = ([*each.keys(), *each.values()] for each in (now, then))
    return all(a is b or (isinstance(a, int) and a == b) for a, b in zip(now, then, strict=True))


def _things(value: Any, depth: int = 0) -> Iterator[Any]:
    """The value, where it can hold something, and what in it can."""
    if isinstance(value, _lru_cache_wrapper):
        yield value
    elif isinstance(value, _CONTAINERS) and depth < _DEEPEST:
        yield value
        inside = list(value.values()) if isinstance(value, _DICTIONARIES) else list(value)
        for part in inside:
            yield from _things(part, depth + 1)


def _is_looked_past(module: str) -> bool:
    """Whether a Python module is known to keep nothing of a pass."""
    top = module.partition(".")[0]
    return is_library(module) or top in sys.stdlib_module_names or top in ("numpy", "PIL")
