"""Prove that a copy of a person's network has what the network has, and computes the same.

What lies in them is compared, and where a pass is known to leave nothing behind, both run on the
same small input: the network itself, as it is, apart from the rest of the process.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking import hooks, replicas
from hookviz.hooking.isolation import isolated, silent_hooks
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.purity import Purity
from hookviz.language.saying import say


def prove(network: nn.Module, copied: nn.Module, shape: tuple[int, ...]) -> None:
    """Refuse a copy that is not one of `network`, since what it shows would be another network's.

    Args:
        network: a person's own; it is run only in evaluation mode, and only where a pass of the
            copy leaves nothing behind.
        copied: in evaluation mode.
        shape: of an input that the copy takes, without the batch.

    Raises:
        ModelError: it is none; with what differs, and where.
    """
    difference = _what_differs(network, copied)
    if difference is None and not any(module.training for module in network.modules()):
        difference = _where_outputs_differ(network, copied, shape)
    if difference is not None:
        raise ModelError(
            say(
                "{name} can't be copied as it is: {reason} Write a __deepcopy__ that copies it, or "
                "keep what it shares out of the network.",
                name=type(network).__name__,
                reason=difference,
            )
        )


def _what_differs(network: nn.Module, copied: nn.Module) -> str | None:
    """Return the first difference in what both hold, as a sentence."""
    own = {id(module) for module in network.modules()}
    copies = dict(copied.named_modules())
    for name, module in copies.items():
        if id(module) in own:
            return say(
                "{layer} of the copy is the network's own.", layer=name or type(module).__name__
            )
    tensors = dict(_named_tensors(copied))
    for name, tensor in _named_tensors(network):
        other = tensors.get(name)
        if other is not None and not _same(tensor, other):
            return say("{layer} of the copy has other values.", layer=name)
    return None


def _named_tensors(network: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from nn.Module.named_parameters(network)
    yield from nn.Module.named_buffers(network)


def _where_outputs_differ(
    network: nn.Module, copied: nn.Module, shape: tuple[int, ...]
) -> str | None:
    device, dtype = device_and_dtype(copied)
    values = torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))
    images = values.to(device, dtype)
    with torch.inference_mode(mode=False), torch.no_grad(), isolated(copied):
        twin = replicas.full_copy(copied)
        watched = Purity(twin)
        try:
            with watched:
                twin(images.clone())
            if not watched.was_pure:
                return None  # a pass of the network's own would leave something in it
            theirs = _outputs(replicas.full_copy(copied), images)
            with silent_hooks(network), isolated(network):
                ours = _outputs(network, images)
        except Exception:  # noqa: BLE001 - what it can't take says the first capture
            return None
    for (name, output), (other_name, other) in zip_longest(ours, theirs, fillvalue=("", None)):
        if name != other_name or not _same(output, other):
            layer = name or other_name or type(network).__name__
            return say("{layer} of the copy puts out something else.", layer=layer)
    return None


def _outputs(network: nn.Module, images: Tensor) -> list[tuple[str, Tensor]]:
    """Return what the modules put out in the order of their calls, and the network at the end."""
    outputs: list[tuple[str, Tensor]] = []

    def see(call: hooks.Call) -> None:
        # Nested, sparse and mapped ones can't be compared, and what comes of them can.
        tensors = (each for _, each in hooks.tensors_in(call.output) if not kind_of(each))
        outputs.extend((call.layer, tensor.detach().clone()) for tensor in tensors)

    names = [name for name, module in network.named_modules() if not any(module.children())]
    with hooks.observe(network, dict.fromkeys((*names, "")), see):
        network(images.clone())
    return outputs


def _same(one: Any, other: Any) -> bool:
    """Return whether two tensors have the same values; NaN in both is the same."""
    if one.shape != other.shape or one.dtype != other.dtype or one.is_meta or other.is_meta:
        return bool(one.is_meta and other.is_meta)
    if one.layout != torch.strided or one.is_quantized:
        return True  # of those nobody asks here
    return torch.equal(one, other) or torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
