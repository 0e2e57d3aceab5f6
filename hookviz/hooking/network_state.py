"""Tell by a quick look at its modules whether a network is still made and set as it was.

Findings about a network, and its replicas at rest, hold for the modules that it had then. Where a
pass finds the network changed, those in a `ByNetwork` or in `Findings` are forgotten.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import WeakSet, ref

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.weights_digest import settings_of

Network = TypeVar("Network", bound=nn.Module)

_shared: "WeakSet[nn.Module]" = WeakSet()


def share(network: Network) -> Network:
    """Have passes of a network of the catalog, or of one made from it, run on replicas."""
    _shared.add(network)
    return network


def is_shared(network: nn.Module) -> bool:
    """Return whether passes run on replicas of the network, which is one of the catalog's."""
    return network in _shared


def state_of(network: nn.Module) -> int:
    """Return a hash that is another one after modules came, went or were replaced.

    Or after a weight of another shape was put in; in a shared network, any other tensor. Not after
    values or modes changed, or hooks.
    """
    state: list[Any] = []
    counts_tensors = is_shared(network)
    found, listed = [network], {id(network)}
    for module in found:  # grows
        for name, part in module._modules.items():
            state += (name, id(part))
            if part is not None and id(part) not in listed:
                listed.add(id(part))
                found.append(part)
        for weight in module._parameters.values():
            state.append(None if weight is None else weight.shape)
        if counts_tensors:
            state += map(id, (*module._parameters.values(), *module._buffers.values()))
    return hash(tuple(state))


class ByNetwork(WeakIdKeyDictionary):
    """Dictionary of findings by network: they go with the network, and when it was changed."""

    def __init__(self) -> None:
        super().__init__()
        _every.append(ref(self))

    def forget(self, network: nn.Module) -> None:
        """Forget what is kept of a network."""
        self.pop(network, None)  # type: ignore[no-untyped-call]


_every: list[ref[ByNetwork]] = []
_states: MutableMapping[nn.Module, tuple[int, int]] = WeakIdKeyDictionary()
_lock = threading.Lock()
_here = threading.local()


@contextmanager
def unchanged(network: nn.Module) -> Iterator[None]:
    """Look at a network once for all of the block in this thread, as nobody changes it meanwhile.

    Where it is another one than when it was last looked at, all that a `ByNetwork` has of it is
    forgotten first. Attributes that passes of the block moved, such as a counter, do not count.
    """
    checked, key = _checked(), id(network)  # nobody else's while the block holds it
    if key in checked:
        yield
        return
    _look(network)
    checked.add(key)
    try:
        yield
    finally:
        checked.discard(key)
        with _lock:
            _states[network] = _states[network][0], _settings(network)


def _checked() -> set[int]:
    if not hasattr(_here, "checked"):
        _here.checked = set()
    checked: set[int] = _here.checked
    return checked


def _settings(network: nn.Module) -> int:
    return 0 if is_shared(network) else settings_of(network)  # a network of the catalog keeps them


def _look(network: nn.Module) -> None:
    state = state_of(network), _settings(network)
    with _lock:
        before = _states.get(network)
        if before != state:
            _states[network] = state
            for each in _every if before is not None else ():
                if (findings := each()) is not None:
                    findings.forget(network)


Finding = TypeVar("Finding")


class Findings(Generic[Finding]):
    """Findings about networks, each by a key of its own; the oldest of a network's go first."""

    def __init__(self, most: int) -> None:
        """Keep at most so many of one network."""
        self._most = most
        self._lock = threading.Lock()
        self._known: MutableMapping[nn.Module, KnownOfNetwork[Finding]] = ByNetwork()

    def of(self, network: nn.Module) -> "KnownOfNetwork[Finding]":
        """Return the findings about a network as it is now; none where it was changed."""
        if id(network) not in _checked():
            _look(network)
        with self._lock:
            known = self._known.get(network)
            if known is None:
                known = self._known[network] = KnownOfNetwork(self._most)
            return known


@dataclass(eq=False, slots=True)
class KnownOfNetwork(Generic[Finding]):
    """Findings about a network in one state.

    Attributes:
        most: how many there are at most.
        findings: by their keys.
        lock: of the findings.
        one_at_a_time: for those who find what others may be about to find.
    """

    most: int
    findings: dict[Hashable, Finding] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    one_at_a_time: threading.RLock = field(default_factory=threading.RLock)

    def get(self, key: Hashable) -> Finding | None:
        """Return the finding, or None where there is none."""
        with self.lock:
            return self.findings.get(key)

    def find(self, key: Hashable, work_out: Callable[[], Finding]) -> Finding:
        """Return the finding, worked out where there is none."""
        found = self.get(key)
        return self.keep(key, work_out()) if found is None else found

    def keep(self, key: Hashable, finding: Finding) -> Finding:
        """Keep a finding, and return it."""
        with self.lock:
            while len(self.findings) >= self.most:
                self.findings.pop(next(iter(self.findings)))
            self.findings[key] = finding
        return finding
