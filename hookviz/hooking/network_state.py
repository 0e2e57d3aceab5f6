"""Tell by a quick look at its modules whether a network is still what it was.

What was found out about a network, and its replicas at rest, hold for the modules, tensors, hooks
and modes that it had then. What keeps such things in a `ByNetwork` need not ask: where a pass finds
the network changed, they are forgotten.
"""

import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from weakref import ref

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

_TABLES = (
    *("training", "_modules", "_parameters", "_buffers"),
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
)
_tables_in = itemgetter(*_TABLES)
_tables_of = attrgetter(*_TABLES)  # slower, and of a TorchScript module too


class NetworkState(NamedTuple):
    """State of a network as far as a quick look shows it.

    It is another one after modules, parameters, buffers or hooks came, went or were replaced, or a
    mode changed. Not after values did: whoever shares a tensor sees those, and its device and
    precision.

    Attributes:
        fingerprint: hash of all that.
        is_training: whether any module is in training mode.
    """

    fingerprint: int
    is_training: bool


def state_of(network: nn.Module) -> NetworkState:
    """Return the state of a network now, by one walk through its modules.

    A walk costs what touching them costs, whose memory a pass has driven from the caches: a third
    of a millisecond for MobileNet V2's 213. So it is one for all questions.
    """
    state: list[Any] = []
    found, listed = [network], {id(network)}
    is_training = False
    for module in found:  # grows
        try:
            tables = _tables_in(module.__dict__)
        except KeyError:
            tables = _tables_of(module)
        training, modules, parameters, buffers, *hooks = tables
        if training:
            is_training = True
            state.append(id(module))
        if modules:
            state += modules.keys()  # of a TorchScript module it is no dictionary
            for part in modules.values():
                state.append(id(part))
                if part is not None and id(part) not in listed:
                    listed.add(id(part))
                    found.append(part)
        if parameters:
            state += map(id, parameters.values())
        if buffers:
            state += map(id, buffers.values())
        if any(hooks):
            state.append(id(module))
            state += (tuple(table) for table in hooks)  # their keys
    return NetworkState(hash(tuple(state)), is_training)


class ByNetwork(WeakIdKeyDictionary):
    """Dictionary of findings by network: they go with the network, and when it was changed."""

    def __init__(self) -> None:
        super().__init__()
        _every.append(ref(self))

    def forget(self, network: nn.Module) -> None:
        """Forget what is kept of a network."""
        self.pop(network, None)  # type: ignore[no-untyped-call]


_every: list[ref[ByNetwork]] = []
_states: MutableMapping[nn.Module, NetworkState] = WeakIdKeyDictionary()
_lock = threading.Lock()
_here = threading.local()


@contextmanager
def unchanged(network: nn.Module) -> Iterator[NetworkState]:
    """Look at a network once for all of the block in this thread, as nobody changes it meanwhile.

    Where it is another one than when it was last looked at, all that a `ByNetwork` has of it is
    forgotten first.
    """
    looked_at, key = _looked_at_here(), id(network)  # nobody else's while the block holds it
    if key in looked_at:
        yield looked_at[key]
        return
    looked_at[key] = _look(network)
    try:
        yield looked_at[key]
    finally:
        del looked_at[key]


def _looked_at_here() -> dict[int, NetworkState]:
    """Return the states of the networks in whose blocks this thread is, by their identity."""
    if not hasattr(_here, "states"):
        _here.states = {}
    states: dict[int, NetworkState] = _here.states
    return states


def _look(network: nn.Module) -> NetworkState:
    state = state_of(network)
    with _lock:
        before = _states.get(network)
        if before != state:
            _states[network] = state
            for each in _every if before is not None else ():
                if (findings := each()) is not None:
                    findings.forget(network)
    return state
