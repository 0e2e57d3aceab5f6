"""What becomes of a whole random network: a graph, a network that equals others, mixed precision.

A form takes a network that is ready, in eval mode, and gives back a module of one image.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torchvision.models.feature_extraction import create_feature_extractor

FORMS: dict[str, Callable[[nn.Module], nn.Module]] = {}


def form(make: Callable[[nn.Module], nn.Module]) -> Any:
    FORMS[make.__name__] = make
    return make


@form
def symbolic_trace(network: nn.Module) -> nn.Module:
    return fx.symbolic_trace(network)


@form
def feature_extractor(network: nn.Module) -> nn.Module:
    """Torchvision's: two graphs, one for training."""
    extractor: nn.Module = create_feature_extractor(network, {"stem": "early", "head": "scores"})
    return extractor


class Around(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Any:
        return self.network(images)


@form
class InsideAGraph(Around):
    """A graph module as a part of a network of one's own."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__(symbolic_trace(network))


@form
class EqualToOthers(Around):
    """Equal to every network of its kind, as data classes of one configuration are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EqualToOthers)

    def __hash__(self) -> int:
        return 0


@form
class ShiftsInHalf(Around):
    """The first parameter is of half the precision of all others, and of the input."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        self.shift = nn.Parameter(torch.full((3,), 0.125, dtype=torch.bfloat16))

    def forward(self, images: Tensor) -> Any:
        return self.network(images + self.shift.to(images.dtype)[:, None, None])


@form
class JudgesInHalf(nn.Module):
    """The last layer is registered first, and in half precision."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.judge = nn.Linear(5, 5, dtype=torch.bfloat16)
        self.network = network

    def forward(self, images: Tensor) -> Any:
        return self.judge(self.network(images).to(torch.bfloat16)).to(images.dtype)


@form
class CastsByItself(Around):
    def forward(self, images: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.network(images).float()


@form
def channels_last(network: nn.Module) -> nn.Module:
    """Weights whose channels lie last in memory."""
    return network.to(memory_format=torch.channels_last)
