"""Private replicas of a shared model, so that one run's hooks never see another run's data.

A hook on a module fires for everybody who runs that module. A replica has modules and hook
dictionaries of its own around the very same tensors, so it costs milliseconds and no memory. Of a
network that does more than compute (see `hookviz.hooking.conduct`), every replica has copies of
all tensors too and is thrown away after one pass: nothing that a pass does outlives it.
"""

import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.hooking.conduct import only_computes
from hookviz.hooking.copies import deep_copy
from hookviz.hooking.foreign_hooks import foreign_hooks, remove

Network = TypeVar("Network", bound=nn.Module)

_MOST_IDLE = 4  # replicas kept per model; more runs at once than that make their own

_lock = threading.Lock()
_idle: MutableMapping[nn.Module, list["_Replica[Any]"]] = WeakIdKeyDictionary()


@contextmanager
def borrow(network: Network) -> Iterator[Network]:
    """A private replica of `network` for the time of the block.

    Where the network only computes, the replica shares every parameter and buffer, so they are not
    to be written to. On return it goes back to a small pool, unless a hook or a changed mode was
    left on it.
    """
    if not only_computes(network):
        yield replicate(network)
        return
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


def replicate(
    network: Network,
    tensor: Callable[[Tensor], Tensor] | None = None,
    memo: dict[int, Any] | None = None,
) -> Network:
    """New modules around `network`'s tensors, or around what `tensor` makes of each of them.

    Without `tensor` they are the very same tensors where the network only computes, else copies.
    Hooks that are not the network's own stay behind (see `hookviz.hooking.foreign_hooks`).
    """
    if tensor is None:
        tensor = _itself if only_computes(network) else _copy
    shared = {
        id(value): value
        for module in network.modules()
        # A plain attribute can hold a tensor too: weight norm keeps its product there.
        for group in (module._parameters, module._buffers, vars(module))
        for value in group.values()
        if isinstance(value, Tensor)
    }
    memo = {} if memo is None else memo
    memo.update((key, tensor(value)) for key, value in shared.items())
    foreign = foreign_hooks(network)
    memo.update({id(hook): None for hook in foreign.values()})  # nothing of theirs is copied
    replica = deep_copy(network, memo)
    remove(replica, foreign)
    return replica


def full_copy(network: Network, memo: dict[int, Any] | None = None) -> Network:
    """New modules around copies of every tensor: nothing is shared with anybody.

    They are ordinary tensors, whatever block the copy is made in and whatever the network's are.
    What `copy.deepcopy` copies with the same `memo` later shares memory with the copy as it does
    with the network.
    """
    with torch.inference_mode(mode=False), torch.no_grad():
        return replicate(network, _copy, memo)


def shapes_only(network: nn.Module) -> nn.Module:
    """A replica without data: on torch's meta device a pass computes shapes and no values."""

    def empty(tensor: Tensor) -> Tensor:
        hollow = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(hollow, requires_grad=False)
        return hollow

    return replicate(network, empty)


def for_gradients(network: Network, *, trainable: bool = False) -> Network:
    """A fresh replica that autograd can go through: no module of it works in place.

    Its parameters share memory with the network's and must not be written to. Throw it away after
    use.

    Args:
        network: the shared one.
        trainable: gradients flow to the parameters too, which are new leaves then; buffers are
            copies, so that a batch norm in training mode moves nobody's averages.
    """
    shared = only_computes(network)

    def leaf(tensor: Tensor) -> Tensor:
        if isinstance(tensor, nn.Parameter):
            values = tensor.detach() if shared else tensor.detach().clone()
            return nn.Parameter(values, requires_grad=tensor.is_floating_point())
        return tensor.detach().clone()

    made = replicate(network, leaf) if trainable else replicate(network)
    for module in made.modules():
        if getattr(module, "inplace", False) is True:
            module.inplace = False  # type: ignore[assignment]
    return made


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def _copy(tensor: Tensor) -> Tensor:
    values = tensor.detach().clone()
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(values, requires_grad=tensor.requires_grad)
    return values


class _Replica(Generic[Network]):
    """A replica that knows what it was like when it was new."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._modules = tuple(network.modules())  # listing them takes longer than looking at them
        self._new = self._condition()

    def is_clean(self) -> bool:
        """Whether no hook was left on it, and no module switched to another mode."""
        return self._condition() == self._new

    def _condition(self) -> list[tuple[int, ...]]:
        return [
            (
                len(module._forward_hooks),
                len(module._forward_pre_hooks),
                len(module._backward_hooks),
                len(module._backward_pre_hooks),
                module.training,
            )
            for module in self._modules
        ]
