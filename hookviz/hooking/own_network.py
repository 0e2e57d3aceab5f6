"""Run a person's own network itself, and restore its state afterwards.

1. Take the network's lock: one thread at a time runs it, as hooks sit on the very modules.
2. Keep the random generators and every buffer; let other weights stand for its own where asked.
3. Put it into evaluation mode, and edit the layers that the model edits.
4. On every way out put back the flags, the weights, the buffers and the generators.

Other side effects of a call, such as filling a cache of the network's code, stay.
"""

import random
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.grad_mode import _unsafe_preserve_version_counter
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.hooking import hooks
from hookviz.hooking.edits import edited_layers
from hookviz.hooking.modules import SharedBlock, as_written, compiled_parts
from hookviz.hooking.network_state import unchanged
from hookviz.types import Model


def generators() -> tuple[Any, ...]:
    """Return the state of the global random generators, to be compared or restored."""
    name, keys, *position = np.random.get_state(legacy=True)
    devices = torch.cuda.get_rng_state_all() if torch.cuda._initialized else []
    states = [torch.get_rng_state(), *devices]
    return (
        tuple(state.numpy().tobytes() for state in states),
        random.getstate(),
        (name, np.asarray(keys).tobytes(), *position),
    )


def put_generators_back(state: tuple[Any, ...]) -> None:
    """Restore a state that `generators` returned."""
    (cpu, *devices), pythons, (name, keys, *position) = state
    torch.set_rng_state(_as_tensor(cpu))
    if devices:
        torch.cuda.set_rng_state_all([_as_tensor(each) for each in devices])
    random.setstate(pythons)
    np.random.set_state((name, np.frombuffer(keys, np.uint32), *position))


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _keep() -> Callable[[], object]:
    before = generators()

    def put_back() -> None:
        if generators() != before:
            put_generators_back(before)

    return put_back


_same_generators = SharedBlock(_keep)
"""Block behind which the generators are where they were before it."""


@dataclass(eq=False, slots=True)
class _Lock:
    """Lock of one network, and the model whose pass the thread that has it is in."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    model: Model | None = None


_locks: MutableMapping[nn.Module, _Lock] = WeakIdKeyDictionary()
_guard = threading.Lock()


def _lock_of(network: nn.Module) -> _Lock:
    with _guard:
        return _locks.setdefault(network, _Lock())


@contextmanager
def locked(network: nn.Module) -> Iterator[None]:
    """Hold a network's lock for the block: no other thread looks at it meanwhile."""
    with _lock_of(network).lock:
        yield


@contextmanager
def own_network(model: Model) -> Iterator[nn.Module]:
    """Hold the model's own network for passes; blocks of one thread can be nested."""
    held, network = _lock_of(model.network), model.network
    with held.lock, ExitStack() as stack:
        is_within_a_pass = stack.enter_context(hooks.apart_from_a_pass())
        if held.model is not None and _is_prepared(held.model, model):
            if is_within_a_pass:  # which goes on from where it is
                stack.enter_context(_same_generators)
                stack.enter_context(buffers_put_back(network, by_value=model.train))
                stack.enter_context(edited_layers(network, model.edits))
            yield network
            return
        if held.model is not None and held.model.edits is not model.edits:
            stack.enter_context(hooks.silenced())  # those edits are not this model's
        stack.callback(setattr, held, "model", held.model)
        held.model = model
        stack.enter_context(unchanged(network))  # what the passes move is no change of its owner's
        stack.enter_context(_same_generators)
        stack.enter_context(replaced_tensors(network, model.replaced))
        stack.enter_context(buffers_put_back(network, by_value=model.train))
        if not model.train:
            stack.enter_context(_evaluation_mode(network))
        if compiled_parts(network):
            stack.enter_context(as_written)
        if model.example is not None:
            stack.enter_context(_image_alone(network, model.example))
        stack.enter_context(edited_layers(network, model.edits))
        yield network


def _is_prepared(held: Model, model: Model) -> bool:
    """Return whether a network that is held for one model is as another one of it wants it."""
    return (
        held.replaced is model.replaced
        and held.edits is model.edits
        and held.example is model.example
        and held.train is model.train
    )


@contextmanager
def _evaluation_mode(network: nn.Module) -> Iterator[None]:
    flags = [(module, module.training) for module in network.modules()]
    try:
        if any(is_training for _, is_training in flags):
            try:
                network.eval()
            except Exception:  # noqa: BLE001 - a person's own may take arguments, or raise anything
                for module, _ in flags:
                    module.training = False
        yield
    finally:
        try:
            for module, is_training in flags:
                if module.training is not is_training:
                    with suppress(Exception):  # of a person's own code
                        module.train(is_training)  # which graph modules swap their graph by
        finally:
            for module, is_training in flags:
                module.training = is_training  # those that a parent has switched


@contextmanager
def buffers_put_back(network: nn.Module, *, by_value: bool = True) -> Iterator[None]:
    """Put back each buffer that was written to or replaced.

    On a CPU values tell, else the counter of writes, as a look at values has to wait for a card;
    with `by_value` values always do: batch norms in training mode count no writes.
    """
    tables = [(module._buffers, dict(module._buffers)) for module in network.modules()]
    saved = [
        (buffer, _copy(buffer), _writes(buffer))
        for _, own in tables
        for buffer in own.values()
        if buffer is not None and not buffer.is_meta
    ]
    with ExitStack() as counters:
        # The counters of writes too: graphs that a person keeps go by them, and so do caches.
        for written, _, writes in saved:
            if writes >= 0:
                counters.enter_context(_unsafe_preserve_version_counter(written))
        try:
            yield
        finally:
            for table, own in tables:
                for name, buffer in own.items():
                    if name not in table or table[name] is not buffer:
                        table[name] = buffer  # a script's table has no other way
            for buffer, before, writes in saved:
                if buffer.requires_grad and not before.requires_grad:
                    buffer.detach_()  # it is no end of a graph that a pass made
                by_values = by_value or buffer.device.type == "cpu"
                if not _is_same(buffer, before) if by_values else _writes(buffer) != writes:
                    _copy_back(buffer, before)


def _copy(buffer: Tensor) -> Tensor:
    return buffer.detach().clone().requires_grad_(buffer.requires_grad)


def _copy_back(buffer: Tensor, before: Tensor) -> None:
    with torch.inference_mode(buffer.is_inference()), torch.no_grad():
        if buffer.shape != before.shape:
            buffer.resize_(before.shape)
        buffer.copy_(before)


def _writes(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _is_same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or torch.equal(one, other):
        return one.shape == other.shape
    return one.is_floating_point() and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


@contextmanager
def replaced_tensors(network: nn.Module, replaced: Mapping[str, Tensor]) -> Iterator[None]:
    """Let other tensors stand for parameters and buffers in the block, by name; tied ones too."""
    if not replaced:
        yield
        return
    names = [*nn.Module.named_parameters(network), *nn.Module.named_buffers(network)]
    by_id = {id(tensor): replaced[name] for name, tensor in names if name in replaced}
    with ExitStack() as stack:
        for module in network.modules():
            for table in (module._parameters, module._buffers):
                for name, tensor in list(table.items()):
                    if tensor is not None and id(tensor) in by_id:
                        # Not into the table alone: recurrent layers keep a list beside it.
                        stack.callback(_set, module, table, name, tensor)
                        _set(module, table, name, by_id[id(tensor)])
        yield


def _set(module: nn.Module, table: dict[str, Any], name: str, tensor: Tensor) -> None:
    table[name] = tensor
    if isinstance(module, nn.RNNBase) and name in module._flat_weights_names:
        module._flat_weights[module._flat_weights_names.index(name)] = tensor


@contextmanager
def _image_alone(network: nn.Module, example: Any) -> Iterator[None]:
    """Let the network's forward take the image alone, and an example's other arguments with it."""
    own = vars(network).get("forward")
    vars(network)["forward"] = partial(example.call, network.forward)
    try:
        yield
    finally:
        if own is None:
            del vars(network)["forward"]
        else:
            vars(network)["forward"] = own
