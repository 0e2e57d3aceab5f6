"""Keep values in per-session LRU caches bounded in bytes, with a bound over all sessions."""

import threading
import weakref
from collections.abc import Hashable
from itertools import count
from typing import Any

from cachetools import LRUCache

_Entry = tuple[Any, int]  # a value and its bytes


class Budget:
    """Bound in bytes over all the caches made from it, least recently used out first.

    Past the limit the entry that nobody has used for longest goes, whoever's it is. One lock
    guards all of a budget's caches, so sessions may live in threads of their own.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.RLock()
        self._numbers = count()
        self._all = _Shared(limit)

    @property
    def limit(self) -> int:
        """Bytes that all caches together may hold."""
        return int(self._all.maxsize)

    @property
    def used(self) -> int:
        """Bytes that all caches together hold now."""
        with self._lock:
            return int(self._all.currsize)

    def give_back(self, size: int) -> int:
        """Drop the least recently used until `size` bytes went; return the bytes that did."""
        with self._lock:
            before = self._all.currsize
            while self._all and before - self._all.currsize < size:
                self._all.popitem()
            return int(before - self._all.currsize)

    def cache(self, limit: int) -> "ByteCache":
        """Return a new, empty cache of at most `limit` bytes under this budget."""
        return ByteCache(limit, next(self._numbers), self._all, self._lock)


class ByteCache:
    """Per-session LRU cache of values by key, bounded in bytes."""

    def __init__(self, limit: int, number: int, shared: "_Shared", lock: threading.RLock) -> None:
        self._own = _Own(limit, number, shared)
        self._number = number
        self._shared = shared
        self._lock = lock
        # A session that is forgotten without a goodbye gives its bytes back as well.
        weakref.finalize(self, _empty, self._own, lock)

    @property
    def limit(self) -> int:
        """Bytes that this cache may hold: its own bound or the budget's, whichever is less."""
        return int(min(self._own.maxsize, self._shared.maxsize))

    @property
    def used(self) -> int:
        """Bytes that this cache holds now."""
        with self._lock:
            return int(self._own.currsize)

    def get(self, key: Hashable) -> Any | None:
        """Return the value kept under `key`, now the most recently used; None if it is missing."""
        with self._lock:
            entry = self._own.get(key)
            if entry is None:
                return None
            self._shared.get((self._number, key))  # counts as use over all sessions too
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> bool:
        """Keep `value`, which takes `size` bytes; return False if it is larger than the bound."""
        with self._lock:
            self._own.pop(key, None)
            if size > self.limit:
                return False
            self._own[key] = (value, size)
            self._shared[self._number, key] = (self._own, size)
            return True

    def hand_over(self, other: "ByteCache", first: tuple[Hashable, ...]) -> None:
        """Have `other` keep what is kept here under the keys that begin with `first`, too."""
        with self._lock:
            entries = [
                (key, *self._own[key])
                for key in list(self._own)
                if isinstance(key, tuple) and key[: len(first)] == first
            ]
        for key, value, size in entries:
            other.put(key, value, size)

    def drop(self, key: Hashable) -> None:
        """Drop one value, if it is there, and give its bytes back."""
        with self._lock:
            self._own.pop(key, None)

    def clear(self) -> None:
        """Drop everything, and give every byte back."""
        _empty(self._own, self._lock)

    def __len__(self) -> int:
        with self._lock:
            return len(self._own)


def _empty(own: "_Own", lock: threading.RLock) -> None:
    with lock:
        while own:
            own.popitem()


def _size(entry: _Entry) -> int:
    return entry[1]


class _Own(LRUCache[Hashable, _Entry]):
    """Entries of one session; an evicted one leaves the process-wide list too."""

    def __init__(self, limit: int, number: int, shared: "_Shared") -> None:
        super().__init__(limit, getsizeof=_size)
        self._number = number
        self._shared = shared

    def __delitem__(self, key: Hashable) -> None:
        super().__delitem__(key)
        self._shared.pop((self._number, key), None)


class _Shared(LRUCache[tuple[int, Hashable], _Entry]):
    """Entries of every session in order of use; an evicted one leaves its session too."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, getsizeof=_size)

    def popitem(self) -> tuple[tuple[int, Hashable], _Entry]:
        (number, key), (owner, size) = super().popitem()
        owner.pop(key, None)
        return (number, key), (owner, size)
