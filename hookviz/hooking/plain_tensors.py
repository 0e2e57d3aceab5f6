"""Turn tensors of any kind into ordinary ones with the numbers that they stand for."""

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor
from torch._C import _functorch

from hookviz.language.saying import mark

Key = TypeVar("Key")

MAPPED = mark("a tensor under torch.vmap")
NESTED = mark("a nested tensor")
QUANTISED = mark("a quantised tensor")
SPARSE = mark("a sparse tensor")


def kind_of(tensor: Tensor) -> str:
    """Return what kind of tensor it is, in words; empty for an ordinary one."""
    if _functorch.is_functorch_wrapped_tensor(tensor):
        return MAPPED
    if tensor.is_nested:
        return NESTED
    if tensor.is_quantized:
        return QUANTISED
    return "" if tensor.layout is torch.strided else SPARSE


def plain(tensor: Tensor) -> Tensor | None:
    """Return the tensor as rows of ordinary numbers; None where its parts make no such rows.

    A sparse tensor with its zeros, a quantised one as the numbers that its whole numbers stand
    for. Of one under `torch.vmap` all that it is mapped over, as the first dimension. A nested
    tensor has no rows where its parts differ in shape. An ordinary tensor is given back itself, and
    gradients find their way through all others that have some.
    """
    kind = kind_of(tensor)
    if kind == MAPPED:
        inside = _functorch.get_unwrapped(tensor)
        if _functorch.is_batchedtensor(tensor):
            inside = inside.movedim(_functorch.maybe_get_bdim(tensor), 0)
        return plain(inside)
    if kind == NESTED:
        parts = tensor.unbind()
        alike = len({part.shape for part in parts}) == 1
        return torch.stack(parts) if alike else None
    if kind == QUANTISED:
        return tensor.dequantize()
    return tensor.to_dense() if kind == SPARSE else tensor


def read_together(scalars: Mapping[Key, Tensor]) -> dict[Key, float]:
    """Read numbers from their devices, those of one device and type in one wait."""
    groups: dict[object, list[Key]] = {}
    for key, each in scalars.items():
        groups.setdefault((each.device, each.dtype), []).append(key)
    read: dict[Key, float] = {}
    for keys in groups.values():
        together = torch.stack([scalars[key].detach() for key in keys])
        read |= zip(keys, together.tolist(), strict=True)
    return read
