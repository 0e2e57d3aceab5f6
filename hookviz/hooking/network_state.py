"""Tell by a quick look at its modules whether a network is still made as it was.

What was found out about a network, and its replicas at rest, hold for the modules that it had then.
What keeps such things in a `ByNetwork` need not ask: where a pass finds the network changed, they
are forgotten.
"""

import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet, ref

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

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
_states: MutableMapping[nn.Module, int] = WeakIdKeyDictionary()
_lock = threading.Lock()
_here = threading.local()


@contextmanager
def unchanged(network: nn.Module) -> Iterator[None]:
    """Look at a network once for all of the block in this thread, as nobody changes it meanwhile.

    Where it is another one than when it was last looked at, all that a `ByNetwork` has of it is
    forgotten first.
    """
    if not hasattr(_here, "looked_at"):
        _here.looked_at = set()
    looked_at: set[int] = _here.looked_at
    key = id(network)  # nobody else's while the block holds it
    if key in looked_at:
        yield
        return
    _look(network)
    looked_at.add(key)
    try:
        yield
    finally:
        looked_at.discard(key)


def _look(network: nn.Module) -> None:
    state = state_of(network)
    with _lock:
        before = _states.get(network)
        if before != state:
            _states[network] = state
            for each in _every if before is not None else ():
                if (findings := each()) is not None:
                    findings.forget(network)
