"""What a sum of products comes to in double precision, by other code than the layer's own."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_MOST_DOUBLES = 1 << 20  # weights at a time


def exact_output(module: nn.Module, image: Tensor) -> Tensor | None:
    """What a Conv2d or Linear makes of `image`, float64, where it is no more than its kind."""
    if "forward" in vars(module):  # somebody has put a function in its place
        return None
    forward = getattr(type(module), "forward", None)  # which the class of a script has not
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        given = image.double()
        exact = torch.cat([given @ part.T for part in iter_double_rows(module.weight)], -1)
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
    """Some rows of a layer's weights at a time in double precision: there can be 100 million."""
    for part in torch.split(weight, max(1, _MOST_DOUBLES // weight[0].numel())):
        yield part.double()
