"""What is found about one layer, and how its numbers are held against others.

Sums of products are held against the same in double precision by other code. By the usual bound on
a sum's rounding error (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1) the
network may be off by a small multiple of ``Σ |w · x| + |b|``, which is at most
``‖w‖₁ · max |x| + |b|`` anywhere in a channel.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(slots=True)
class LayerCheck:
    """What was found about one layer, over all its calls.

    Attributes:
        kind: the module's class.
        compared: how many numbers.
        difference: the largest between the layer's output, the record and the second computation.
        relative: the largest distance from the double-precision result, by that result's largest
            size; NaN where there is no such result.
        agrees: whether every call is within rounding of all of them.
        recorded: whether what people see of it was among what was compared.
        problem: why it does not agree, or why nothing was compared.
    """

    kind: str
    compared: int = 0
    difference: float = 0.0
    relative: float = math.nan
    agrees: bool = True
    recorded: bool = False
    problem: str = ""

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if not self.agrees:
            return "differs"
        if not self.compared:
            return "not checked"
        return "within rounding" if self.difference else "exact"


Tensors = list[tuple[tuple[str, ...], Tensor]]
"""Tensors by their paths inside what holds them."""


_ROUNDING = 1e-5  # of single precision, as the head of this file has it


_TF32_EPSILON = 2.0**-10  # what a GPU may compute float32 convolutions with


_MOST_DOUBLES = 1 << 20  # weights at a time


def compare(check: LayerCheck, recorded: Tensors, again: Tensors) -> bool:
    """Whether both are the same but for rounding; counts and differences go into `check`."""
    if [(path, tensor.shape) for path, tensor in recorded] != [
        (path, tensor.shape) for path, tensor in again
    ]:
        check.difference = math.inf
        return False
    agrees = True
    for (_, ours), (_, theirs) in zip(recorded, again, strict=True):
        check.compared += ours.numel()
        if torch.equal(ours, theirs):
            continue
        difference = float(_distance(ours, theirs).max())
        size = float(torch.nan_to_num(ours.abs().double(), 0, 0, 0).max())
        check.difference = max(check.difference, difference)
        agrees &= difference <= _rounding(ours) * size
    return agrees


def _distance(ours: Tensor, theirs: Tensor) -> Tensor:
    """How far apart two tensors are, float64: 0 for equal or both NaN, ∞ where only one is NaN."""
    ours, theirs = (
        tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        for tensor in (ours, theirs)
    )
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    return (ours - theirs).abs().nan_to_num(math.inf, math.inf).masked_fill(same, 0)


def close_in_double(
    check: LayerCheck,
    module: nn.Module,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    outputs: Tensors,
) -> bool:
    """Whether a sum of products is what double precision makes of it; True for other layers."""
    image = positional[0] if len(positional) == 1 and not named else None
    output = outputs[0][1]
    if not (isinstance(image, Tensor) and image.is_floating_point()):
        return True
    exact = _in_double(module, image)
    if exact is None:
        return True
    assert isinstance(module.weight, Tensor)
    sizes = [part.abs().flatten(1).sum(1) for part in _doubles(module.weight)]
    bound = torch.cat(sizes) * image.abs().max().double()
    if isinstance(module.bias, Tensor):
        bound += module.bias.double().abs()
    if isinstance(module, nn.Conv2d):  # its channels are not the last dimension
        bound = bound[:, None, None]
    # what overflows in the network's own precision is as infinite in ours
    far = exact.to(output.dtype).isinf()
    distance = _distance(output, torch.where(far, exact.to(output.dtype).double(), exact))
    largest = float(exact.abs().nan_to_num(0, 0, 0).max())
    relative = float(distance.max()) / (largest or 1.0)
    check.relative = relative if math.isnan(check.relative) else max(check.relative, relative)
    return bool((distance <= (_rounding(output) * bound).nan_to_num(math.inf)).all())


def _in_double(module: nn.Module, image: Tensor) -> Tensor | None:
    """What a Conv2d or Linear makes of `image`, float64, where it is no more than its kind."""
    if "forward" in vars(module):  # somebody has put a function in its place
        return None
    forward = type(module).forward
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        given = image.double()
        exact = torch.cat([given @ part.T for part in _doubles(module.weight)], -1)
        return exact if module.bias is None else exact + module.bias.double()
    if not isinstance(module, nn.Conv2d) or forward is not nn.Conv2d.forward:
        return None
    if type(module)._conv_forward is not nn.Conv2d._conv_forward:
        return None
    padded, padding = image.double(), module.padding
    if module.padding_mode != "zeros":
        pads = module._reversed_padding_repeated_twice
        padded, padding = F.pad(padded, pads, mode=module.padding_mode), (0, 0)
    return F.conv2d(
        padded,
        module.weight.double(),
        None if module.bias is None else module.bias.double(),
        module.stride,
        padding,
        module.dilation,
        module.groups,
    )


def _doubles(weight: Tensor) -> Iterator[Tensor]:
    """Some rows of a layer's weights at a time in double precision: there can be 100 million."""
    for part in torch.split(weight, max(1, _MOST_DOUBLES // weight[0].numel())):
        yield part.double()


def _rounding(tensor: Tensor) -> float:
    if not tensor.is_floating_point():
        return 0.0 if not tensor.is_complex() else _ROUNDING
    epsilon = torch.finfo(tensor.dtype).eps
    if tensor.device.type != "cpu":
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_ROUNDING, 2 * epsilon)
