"""Make other tensors of those in a layer's output, which keeps its form."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from torch import Tensor


def map_tensors(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return an output with what `change` makes of every tensor in it.

    It goes into dicts, tuples, lists and dataclasses; anything else stays.

    >>> from hookviz.hooking.nested_outputs import map_tensors
    >>> map_tensors((torch.ones(2), "mask"), lambda tensor: tensor * 2)
    (tensor([2., 2.]), 'mask')
    """
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, dict):
        parts = {key: map_tensors(part, change) for key, part in output.items()}
        return parts if type(output) is dict else type(output)(parts)
    if isinstance(output, tuple | list):
        several = [map_tensors(part, change) for part in output]
        is_named = hasattr(output, "_fields")
        return type(output)(*several) if is_named else type(output)(several)
    if is_dataclass(output) and not isinstance(output, type):
        named = {
            each.name: map_tensors(getattr(output, each.name), change) for each in fields(output)
        }
        return replace(output, **named)
    return output
