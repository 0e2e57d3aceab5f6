"""Bound a network's rounding errors, and recompute sums of products in double precision."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_FLOAT32_ROUNDING = 1e-5
_TF32_EPSILON = 2.0**-10  # what a GPU may compute float32 convolutions with
_MAX_DOUBLES = 1 << 20  # weights at a time


def output_in_float64(module: nn.Module, image: Tensor) -> Tensor | None:
    """Recompute a Conv2d or Linear on `image`, float64; None for one that computes otherwise."""
    if "forward" in vars(module):  # somebody replaced the method
        return None
    forward = getattr(type(module), "forward", None)  # which the class of a script has not
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        rows = image.double()
        exact = torch.cat([rows @ part.T for part in iter_double_rows(module.weight)], -1)
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


def iter_double_rows(weight: Tensor) -> Iterator[Tensor]:
    """Yield a layer's weights in double precision by rows: there can be 100 million."""
    for part in torch.split(weight, max(1, _MAX_DOUBLES // weight[0].numel())):
        yield part.double()


def relative_tolerance(tensor: Tensor) -> float:
    """Return by which share of a sum of magnitudes a network's arithmetic may be off; 0 for ints.

    1e-5 in single precision; twice the machine epsilon in float16, in bfloat16 and off the CPU,
    where float32 may be multiplied as TF32.
    """
    if not tensor.is_floating_point():
        return _FLOAT32_ROUNDING if tensor.is_complex() else 0.0
    epsilon = torch.finfo(tensor.dtype).eps
    if tensor.device.type != "cpu":
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_FLOAT32_ROUNDING, 2 * epsilon)
