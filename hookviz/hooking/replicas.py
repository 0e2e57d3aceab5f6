"""Make private replicas of a shared model, so that no run's hooks see another run's data.

A hook on a module fires for everybody who runs that module. A replica has modules and hook
dictionaries of its own around the very same tensors, so it costs milliseconds and no memory. Of a
network that does more than compute (see `hookviz.hooking.purity`), every replica has copies of
all tensors too and is thrown away after one pass: nothing that a pass does outlives it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, UntypedStorage, nn

from hookviz.hooking.copies import deep_copy, tensors_held
from hookviz.hooking.foreign_hooks import adopt, adopted, foreign_hooks, remove
from hookviz.hooking.network_state import ByNetwork
from hookviz.hooking.precision import remember_dtype
from hookviz.hooking.purity import is_pure

Network = TypeVar("Network", bound=nn.Module)

_MOST_IDLE = 4  # replicas kept per model; more runs at once than that make their own

_lock = threading.Lock()
_idle: MutableMapping[nn.Module, list["_Replica[Any]"]] = ByNetwork()


@contextmanager
def borrow(network: Network) -> Iterator[Network]:
    """Lend a private replica of `network` for the block.

    Where the network only computes, the replica shares every parameter and buffer, so they are not
    to be written to. On return it goes back to a small pool, unless a hook or a changed mode was
    left on it.
    """
    if not is_pure(network):
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
    """Make new modules around `network`'s tensors, or around what `tensor` makes of each.

    Without `tensor` they are the very same tensors where the network only computes, else copies.
    Hooks that are not the network's own stay behind (see `hookviz.hooking.foreign_hooks`).
    """
    if tensor is None:
        tensor = _itself if is_pure(network) else _Copies(network)
    shared = {id(value): value for value in _tensors(network, deep=False)}
    if isinstance(tensor, _Copies):
        shared |= tensor.overlapping
    memo = {} if memo is None else memo
    memo.update((key, tensor(value)) for key, value in shared.items())
    foreign = foreign_hooks(network)
    memo.update({id(hook): None for hook in foreign.values()})  # nothing of theirs is copied
    replica = deep_copy(network, memo)
    remove(replica, foreign)
    adopt(replica, adopted(network))
    remember_dtype(replica, of=network)
    return replica


def full_copy(network: Network, memo: dict[int, Any] | None = None) -> Network:
    """Make new modules around copies of every tensor, so that nothing is shared.

    They are ordinary tensors, whatever block the copy is made in and whatever the network's are.
    What `copy.deepcopy` copies with the same `memo` later shares memory with the copy as it does
    with the network.
    """
    with torch.inference_mode(mode=False), torch.no_grad():
        return replicate(network, _Copies(network), memo)


def meta_copy(network: nn.Module) -> nn.Module:
    """Make a replica on torch's meta device: a pass computes shapes and no values."""

    def empty(tensor: Tensor) -> Tensor:
        on_meta = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(on_meta, requires_grad=False)
        return on_meta

    return replicate(network, empty)


def for_gradients(network: Network, *, trainable: bool = False) -> Network:
    """Make a replica that autograd can go through: no module of it works in place.

    Its parameters share memory with the network's and must not be written to. Throw it away after
    use.

    Args:
        network: the shared one.
        trainable: gradients flow to the parameters too, which are new leaves then; buffers are
            copies, so that a batch norm in training mode moves nobody's averages.
    """
    shared = is_pure(network)

    def leaf(tensor: Tensor) -> Tensor:
        if isinstance(tensor, nn.Parameter):
            values = tensor.detach() if shared else tensor.detach().clone()
            return nn.Parameter(values, requires_grad=tensor.is_floating_point())
        return tensor.detach().clone()

    replica = replicate(network, leaf) if trainable else replicate(network)
    for module in replica.modules():
        if getattr(module, "inplace", False) is True:
            module.inplace = False  # type: ignore[assignment]
    return replica


def _itself(tensor: Tensor) -> Tensor:
    return tensor


class _Copies:
    """Copies of tensors, which overlap in memory as the tensors do."""

    def __init__(self, network: nn.Module) -> None:
        every = {id(each): each for each in _tensors(network, deep=True)}
        self._storages = _overlapping(every.values())
        self.overlapping = {
            key: each for key, each in every.items() if memory_of(each) in self._storages
        }

    def __call__(self, tensor: Tensor) -> Tensor:
        """Copy a tensor, sharing memory with earlier copies as the tensor does."""
        values = tensor.detach()
        storage = self._storages.get(memory_of(values))
        if storage is None:
            values = values.clone()
        else:
            layout = values.storage_offset(), values.size(), values.stride()
            values = values.new_empty(0).set_(storage, *layout)
        if isinstance(tensor, nn.Parameter):
            return nn.Parameter(values, requires_grad=tensor.requires_grad)
        return values


def _overlapping(tensors: Iterable[Tensor]) -> dict[int, UntypedStorage]:
    """Return a copy of each memory in which two of the tensors overlap."""
    lying: dict[int, list[tuple[int, int, Tensor]]] = {}
    for tensor in tensors:
        if tensor.layout == torch.strided and tensor.numel() and not tensor.is_meta:
            reach = sum(
                (size - 1) * step for size, step in zip(tensor.size(), tensor.stride(), strict=True)
            )
            begin = int(tensor.storage_offset()) * tensor.itemsize
            end = begin + (int(reach) + 1) * tensor.itemsize
            lying.setdefault(memory_of(tensor), []).append((begin, end, tensor))
    copied = {}
    for memory, places in lying.items():
        places.sort(key=lambda span: span[:2])
        if any(later[0] < earlier[1] for earlier, later in pairwise(places)):
            storage: Any = places[0][2].untyped_storage()
            copied[memory] = storage.clone()
    return copied


def _tensors(network: nn.Module, *, deep: bool) -> Iterator[Tensor]:
    """Yield the tensors that the modules hold; with `deep` those inside of their attributes too."""
    for module in network.modules():
        # A plain attribute can hold a tensor too: weight norm keeps its product there.
        for group in (module._parameters, module._buffers, vars(module)):
            yield from (value for value in group.values() if isinstance(value, Tensor))
    if deep:
        yield from tensors_held(network)


def memory_of(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; 0 where it has none of the usual kind."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else 0


class _Replica(Generic[Network]):
    """Replica that remembers its hooks and modes when it was new."""

    def __init__(self, network: Network) -> None:
        self.network = network
        # Looking for them takes longer than looking at them.
        self._modules = tuple(network.modules())
        self._tables = tuple(
            table
            for module in self._modules
            for table in (
                *(module._forward_hooks, module._forward_pre_hooks),
                *(module._backward_hooks, module._backward_pre_hooks),
            )
        )
        self._new = self._condition()

    def is_clean(self) -> bool:
        """Return whether no hook was left on it, and no module switched to another mode."""
        return self._condition() == self._new

    def _condition(self) -> tuple[list[int], list[bool]]:
        modes = [module.training for module in self._modules]
        return list(map(len, self._tables)), modes
