"""Keep loaded models that all sessions share, bounded in bytes.

What two models have in common, as a network and the same one with some channels silent do, counts
once, and goes when the last of them goes.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.types import Model
from hookviz.wording import memory_size

_PATIENCE = 30.0  # seconds to wait for others to finish with models that fill the pool


@dataclass(eq=False, slots=True)
class _Entry:
    """Model in the pool, loaded or being loaded.

    Attributes:
        parts: bytes of its tensors by their addresses; while it is being loaded, one part of the
            bytes that it will take.
        users: number of blocks that use it now.
        model: once it is loaded.
    """

    parts: Mapping[Hashable, int]
    users: int = 1
    model: Model | None = None


class ModelPool:
    """LRU pool of models by key, bounded in bytes, which never evicts one that is in use.

    Those who ask for a model while it is being loaded wait for that one loading. Different models
    load side by side.
    """

    def __init__(self, limit: int, patience: float = _PATIENCE) -> None:
        """Start empty; `limit` is in bytes, and `patience` how many seconds to wait for room."""
        self.limit = limit
        self._patience = patience
        self._changed = threading.Condition()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()  # least recently used first

    @property
    def used(self) -> int:
        """Bytes of all models that are loaded or being loaded; shared tensors count once."""
        with self._changed:
            return self._used()

    @contextmanager
    def use(
        self,
        key: Hashable,
        title: str,
        size: int,
        load: Callable[[], Model],
        on_wait: Callable[[], object] = lambda: None,
    ) -> Iterator[Model]:
        """Hold the model under `key` for the block, loaded by `load` if it is not there.

        Args:
            key: tells models apart; a name and weights, say.
            title: what to call it in an error.
            size: bytes that it will take, before it is loaded.
            load: makes the model; what it raises passes on, and leaves nothing behind.
            on_wait: called before a wait for others, who load it or leave no room; what it raises
                passes on in place of that.

        Raises:
            ModelError: it is larger than the limit, or models in use leave no room for it.
        """
        entry = self._enter(key, title, size, load, on_wait)
        try:
            assert entry.model is not None
            yield entry.model
        finally:
            with self._changed:
                entry.users -= 1
                self._changed.notify_all()

    @property
    def unused(self) -> int:
        """Bytes of the models that nobody uses now."""
        with self._changed:
            return self._used() - _bytes(each for each in self._entries.values() if each.users)

    def evict_unused(self, nbytes: int | None = None) -> int:
        """Drop models that nobody uses now, the least recently used first.

        Args:
            nbytes: bytes that should go; None for all such models.

        Returns:
            The bytes that went.
        """
        with self._changed:
            before = self._used()
            for key in self._unused():
                if nbytes is not None and before - self._used() >= nbytes:
                    break
                del self._entries[key]
            return before - self._used()

    def _enter(
        self,
        key: Hashable,
        title: str,
        size: int,
        load: Callable[[], Model],
        on_wait: Callable[[], object],
    ) -> _Entry:
        with self._changed:
            if not self._ready(key, size):
                on_wait()
            ready = self._changed.wait_for(lambda: self._ready(key, size), self._patience)
            if size > self.limit:
                raise ModelError(
                    say(
                        "{title} takes {size}, more than the {limit} that models may take here "
                        "(HOOKVIZ_MODELS_MB). A smaller one fits.",
                        title=title,
                        size=memory_size(size),
                        limit=memory_size(self.limit),
                    )
                )
            if not ready:
                raise ModelError(
                    say(
                        "There is no room for {title} ({size}) while others use the {used} of "
                        "models that are loaded. Try again in a moment.",
                        title=title,
                        size=memory_size(size),
                        used=memory_size(self._used()),
                    )
                )
            entry = self._entries.get(key)
            if entry is not None:
                entry.users += 1
                self._entries.move_to_end(key)
                return entry
            self._make_room(size)
            entry = self._entries[key] = _Entry({("loading", key): size})
        try:
            model = load()
        except BaseException:
            with self._changed:
                del self._entries[key]
                self._changed.notify_all()
            raise
        with self._changed:
            entry.model = model
            entry.parts = _parts(model)
            self._changed.notify_all()
        return entry

    def _ready(self, key: Hashable, size: int) -> bool:
        """Return whether it is loaded, there is room for it, or there never will be."""
        entry = self._entries.get(key)
        if entry is not None:
            return entry.model is not None
        in_use = _bytes(entry for entry in self._entries.values() if entry.users)
        return size > self.limit or in_use + size <= self.limit

    def _make_room(self, size: int) -> None:
        for key in self._unused():
            if self._used() + size <= self.limit:
                break
            del self._entries[key]

    def _unused(self) -> list[Hashable]:
        return [key for key, entry in self._entries.items() if not entry.users]

    def _used(self) -> int:
        return _bytes(self._entries.values())


def _bytes(entries: Iterable[_Entry]) -> int:
    """Return the bytes that models take together; shared tensors count once."""
    parts: dict[Hashable, int] = {}
    for entry in entries:
        parts.update(entry.parts)
    return sum(parts.values())


def _parts(model: Model) -> dict[Hashable, int]:
    """Return the bytes of a model's tensors by address, which no two live tensors share."""
    tensors = model.network.state_dict().items()
    return {
        (tensor.device, tensor.data_ptr() or (id(model), name)): tensor.nbytes
        for name, tensor in tensors
    }


def model_bytes(model: Model) -> int:
    """Return the bytes of a model's parameters and buffers."""
    return sum(tensor.nbytes for tensor in model.network.state_dict().values())
