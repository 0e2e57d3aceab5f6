"""What of a person's network and process is to stay as it is, as values that compare."""

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from tests.networks import hook_count

_LIBRARIES = ("torch", "torchvision", "timm", "builtins")


def snapshot(network: nn.Module) -> list[Any]:
    """Every parameter, buffer and attribute of every module: values, versions and flags."""
    state: list[Any] = [hook_count(network)]
    for name, module in network.named_modules():
        state.append((name, {key: _frozen(value) for key, value in vars(module).items()}))
    return state


def _frozen(value: Any) -> Any:
    if isinstance(value, Tensor):
        plain = value.detach()
        values = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
        version = 0 if value.is_inference() else value._version
        flags = (id(value), str(plain.dtype), version, value.requires_grad, value.grad is None)
        return (*flags, np.asarray(values).tobytes())
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(part) for part in value]
    return id(value) if isinstance(value, nn.Module) or callable(value) else repr(value)


def generators() -> tuple[Any, ...]:
    """Where the global generators of torch, Python and NumPy are."""
    return (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        repr(np.random.get_state()),
    )


def settings_of_torch() -> tuple[Any, ...]:
    """Global modes and settings that a pass could leave changed."""
    return (
        *(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()),
        *(torch.backends.mha.get_fastpath_enabled(), torch.get_num_threads()),
        *(len(vars(torch_module)[table]) for table in _GLOBAL_HOOKS),
    )


_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")


def outside(network: nn.Module) -> dict[str, Any]:
    """All that a network's code can reach by name: its classes' attributes, and their modules'."""
    attributes: dict[str, Any] = {}
    for kind in {kind for module in network.modules() for kind in type(module).__mro__}:
        if kind.__module__.partition(".")[0] in _LIBRARIES:
            continue
        holders: dict[str, Mapping[str, Any]] = {
            f"{kind.__module__}.{kind.__qualname__}": vars(kind)
        }
        if kind.__module__ in sys.modules:
            holders[kind.__module__] = vars(sys.modules[kind.__module__])
        for holder, names in holders.items():
            attributes |= {
                f"{holder}.{name}": _content(value) for name, value in list(names.items())
            }
    return attributes


def _content(value: Any, depth: int = 0) -> Any:
    if isinstance(value, Tensor):
        return id(value), str(value.device), 0 if value.is_inference() else value._version
    if depth < 3 and isinstance(value, Mapping):
        return [(repr(key), _content(part, depth + 1)) for key, part in value.items()]
    if depth < 3 and isinstance(value, list | tuple | set | frozenset):
        return [_content(part, depth + 1) for part in value]
    return id(value)


def conditions(network: nn.Module, *, before_a_pass: bool = True) -> dict[str, Any]:
    """All of it, by what it is called.

    Args:
        network: a person's own.
        before_a_pass: False where a pass is run on purpose in between, which may draw, and keep
            outside of the network what its code keeps there.
    """
    snapshots: dict[str, Any] = {"the person's network": snapshot(network)}
    snapshots["a setting of torch's"] = settings_of_torch()
    if before_a_pass:
        snapshots["what is outside of the network"] = outside(network)
        snapshots["a global generator"] = generators()
    return snapshots


class GlobalHooks:
    """A person's hooks on every module of the process; counts how often they fire."""

    def __init__(self) -> None:
        self.watching = True
        self.fired = 0
        self.with_meta = 0

    @contextmanager
    def registered(self) -> Iterator[None]:
        """For the block, from the beginning of which they count."""
        self.fired = self.with_meta = 0
        handles = [
            torch_module.register_module_forward_hook(self._see),
            torch_module.register_module_forward_pre_hook(self._see),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _see(self, _module: nn.Module, inputs: Any, *_output: Any) -> None:
        if not self.watching:
            return
        self.fired += 1
        self.with_meta += any(isinstance(part, Tensor) and part.is_meta for part in inputs)

    def __str__(self) -> str:
        return f"{self.fired} times, {self.with_meta} of them with meta tensors"
