"""Make private replicas of the catalog's networks, so that no run's hooks see another run's data.

A hook on a module fires for everybody who runs that module. A replica has modules and hook
dictionaries of its own around the very same tensors, so it costs milliseconds and no memory. The
catalog's code is known to write to none of them. A person's own network has no replicas (see
`hookviz.hooking.own_network`).
"""

import copy
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from hookviz.hooking.network_state import ByNetwork

Network = TypeVar("Network", bound=nn.Module)

_MOST_IDLE = 4  # replicas kept per model; more runs at once than that make their own
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

_lock = threading.Lock()
_idle: MutableMapping[nn.Module, list["_Replica[Any]"]] = ByNetwork()


@contextmanager
def borrow(network: Network) -> Iterator[Network]:
    """Lend a private replica of `network` for the block; its tensors are not to be written to.

    On return it goes back to a small pool, unless a hook or a changed mode was left on it.
    """
    with _lock:
        idle = _idle.setdefault(network, [])
        replica: _Replica[Network] | None = idle.pop() if idle else None
    if replica is None:
        replica = _Replica(replicate(network))
    try:
        yield replica.network
    finally:
        clean = replica.is_clean()
        with _lock:
            if clean and len(idle) < _MOST_IDLE:
                idle.append(replica)


def replicate(network: Network, tensor: Callable[[Tensor], Tensor] | None = None) -> Network:
    """Make new modules around `network`'s tensors, or around what `tensor` makes of each.

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
        # Looking for them takes longer than looking at them.
        self._modules = tuple(network.modules())
        self._tables = tuple(getattr(module, name) for module in self._modules for name in _HOOKS)
        self._new = self._condition()

    def is_clean(self) -> bool:
        """Return whether no hook was left on it, and no module switched to another mode."""
        return self._condition() == self._new

    def _condition(self) -> tuple[list[int], list[bool]]:
        modes = [module.training for module in self._modules]
        return list(map(len, self._tables)), modes
