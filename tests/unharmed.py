"""What of a person's network and process is to stay as it is, as values that compare."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from tests.networks import hook_count


def _frozen(tensor: Tensor) -> Any:
    plain = tensor.detach()
    values = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
    flags = (id(tensor), str(plain.dtype), tensor.requires_grad, tensor.grad is None)
    return (*flags, np.asarray(values).tobytes())


def snapshot(network: nn.Module) -> list[Any]:
    """Every parameter and buffer, with its flags, and how many hooks and which modes there are."""
    named = (*network.named_parameters(), *network.named_buffers())
    modes = [module.training for module in network.modules()]
    return [hook_count(network), modes, {name: _frozen(each) for name, each in named}]


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


def conditions(network: nn.Module) -> dict[str, Any]:
    """What HookViz takes back where it sets it, by what it is called."""
    return {
        "its hooks": hook_count(network),
        "a training flag": [module.training for module in network.modules()],
        "a buffer": {name: _frozen(each) for name, each in network.named_buffers()},
        "a setting of torch's": settings_of_torch(),
        "a global generator": generators(),
    }


@contextmanager
def one_call(network: nn.Module) -> Iterator[None]:
    """Put back, after plain calls, the buffers, flags and generators that they moved."""
    flags = [(module, module.training) for module in network.modules()]
    state, pythons, numpys = torch.get_rng_state(), random.getstate(), np.random.get_state()
    kept = [
        (module, name, buffer, buffer.clone())
        for module in network.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(pythons)
        np.random.set_state(numpys)
        for module, is_training in flags:
            module.training = is_training
        for module, name, buffer, values in kept:
            module._buffers[name] = buffer
            with torch.no_grad():
                buffer.copy_(values)
