"""Keep findings and replicas of a network as long as its modules and settings stay the same.

A quick look at the modules tells. Where a pass finds the network changed, its entries in a
`ByNetwork` or in `Findings` are forgotten.

A hook on a module fires for everybody who runs that module, so that a network of the catalog runs
as a private replica. It has modules and hook dictionaries of its own around the very same tensors:
it costs milliseconds and no memory. The catalog's code is known to write to none of them. A
person's own network has no replicas (see `hookviz.hooking.own_network`).
"""

import copy
import threading
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import WeakSet, ref

import torch
from torch import Tensor, nn
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
    """Return a hash of the modules and the weights' shapes; of a shared network also its tensors.

    It does not depend on values, modes and hooks.
    """
    state: list[Any] = []
    counts_tensors = is_shared(network)
    modules, listed = [network], {id(network)}
    for module in modules:  # grows
        for name, part in module._modules.items():
            state += (name, id(part))
            if part is not None and id(part) not in listed:
                listed.add(id(part))
                modules.append(part)
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
        """Drop the entry of a network."""
        self.pop(network, None)  # type: ignore[no-untyped-call]


_every: list[ref[ByNetwork]] = []
_states: MutableMapping[nn.Module, tuple[int, int]] = WeakIdKeyDictionary()
_lock = threading.Lock()
_here = threading.local()


@contextmanager
def unchanged(network: nn.Module) -> Iterator[None]:
    """Check once for the block, in this thread, whether a network changed since the last check.

    If it did, its entries in every `ByNetwork` are dropped first. Attributes that passes of the
    block change, such as a counter, do not count.
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
        self._most = most
        self._lock = threading.Lock()
        self._known: MutableMapping[nn.Module, KnownOfNetwork[Finding]] = ByNetwork()

    def of(self, network: nn.Module) -> "KnownOfNetwork[Finding]":
        """Return the findings about a network; none after it was changed."""
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
        one_at_a_time: held while computing a finding that another thread may need too.
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
        """Return the finding, computed where there is none."""
        finding = self.get(key)
        return self.keep(key, work_out()) if finding is None else finding

    def keep(self, key: Hashable, finding: Finding) -> Finding:
        """Keep a finding, and return it."""
        with self.lock:
            while len(self.findings) >= self.most:
                self.findings.pop(next(iter(self.findings)))
            self.findings[key] = finding
        return finding


_MOST_IDLE = 4  # replicas kept per model; more runs at once than that make their own
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

_idle_lock = threading.Lock()
_idle: MutableMapping[nn.Module, list["_Replica[Any]"]] = ByNetwork()


@contextmanager
def borrow(network: Network) -> Iterator[Network]:
    """Lend a private replica of `network` for the block; its tensors are not to be written to.

    On return it goes back to a small pool, unless a hook or a changed mode was left on it.
    """
    with _idle_lock:
        idle = _idle.setdefault(network, [])
        replica: _Replica[Network] | None = idle.pop() if idle else None
    if replica is None:
        replica = _Replica(replicate(network))
    try:
        yield replica.network
    finally:
        clean = replica.is_clean()
        with _idle_lock:
            if clean and len(idle) < _MOST_IDLE:
                idle.append(replica)


def replicate(network: Network, tensor: Callable[[Tensor], Tensor] | None = None) -> Network:
    """Make new modules around `network`'s tensors, or around ``tensor(each)``.

    Hooks stay behind.
    """
    memo: dict[int, Any] = {}
    for module in network.modules():
        # A plain attribute can hold a tensor too: weight norm keeps its product there.
        for group in (module._parameters, module._buffers, vars(module)):
            for value in group.values():
                if isinstance(value, Tensor):
                    memo[id(value)] = value if tensor is None else tensor(value)
        for name in _HOOKS:
            table = getattr(module, name)
            memo[id(table)] = type(table)()
    return copy.deepcopy(network, memo)


def meta_copy(network: nn.Module) -> nn.Module:
    """Make a replica on torch's meta device: a pass computes shapes and no values."""

    def empty(tensor: Tensor) -> Tensor:
        on_meta = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(on_meta, requires_grad=False)
        return on_meta

    return replicate(network, empty)


class _Replica(Generic[Network]):
    """Replica that remembers its hooks and modes when it was new."""

    def __init__(self, network: Network) -> None:
        self.network = network
        # Searching the modules takes longer than comparing them.
        self._modules = tuple(network.modules())
        self._tables = tuple(getattr(module, name) for module in self._modules for name in _HOOKS)
        self._new = self._condition()

    def is_clean(self) -> bool:
        """Return whether no hook was left on it, and no module switched to another mode."""
        return self._condition() == self._new

    def _condition(self) -> tuple[list[int], list[bool]]:
        modes = [module.training for module in self._modules]
        return list(map(len, self._tables)), modes
