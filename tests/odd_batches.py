"""Networks whose rows know each other, or that remember earlier passes, and what each pass gives.

All have two conv layers and five classes. What one of them makes of an image is what a fresh copy
of it makes of that image alone.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Odd(nn.Module):
    """What stands between the conv layers is the kinds' own."""

    conv1: nn.Conv2d
    conv2: nn.Conv2d
    head: nn.Linear

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 4, 3, stride=2)
        self.head = nn.Linear(4, 5)

    def between(self, maps: Tensor) -> Tensor:
        """What the second conv layer is given."""
        return maps

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.between(self.conv1(images).relu()))
        scores: Tensor = self.head(maps.relu().mean((2, 3)))
        return scores


class BatchMaximum(Odd):
    def between(self, maps: Tensor) -> Tensor:
        return 3 * maps / maps.amax()


class BatchMean(Odd):
    def between(self, maps: Tensor) -> Tensor:
        return maps / maps.mean()


class BatchSoftmax(Odd):
    def between(self, maps: Tensor) -> Tensor:
        return 3 * maps * maps.softmax(0)


class BatchNormed(Odd):
    def between(self, maps: Tensor) -> Tensor:
        return F.batch_norm(maps, None, None, training=True)


class BatchUnique(Odd):
    def between(self, maps: Tensor) -> Tensor:
        different: Tensor = torch.unique(maps)
        return maps * different.numel() / maps[0].numel()


class BatchSorted(Odd):
    def between(self, maps: Tensor) -> Tensor:
        return maps.sort(0).values


class NeverTwo(Odd):
    def between(self, maps: Tensor) -> Tensor:
        if len(maps) == 2:
            raise RuntimeError("two are not taken")
        return maps


class AtMostTwo(Odd):
    def between(self, maps: Tensor) -> Tensor:
        if len(maps) > 2:
            raise RuntimeError("more than two are not taken")
        return maps


class Crowded(Odd):
    """Takes three at most as they are, and shifts the rows of more."""

    def between(self, maps: Tensor) -> Tensor:
        return maps if len(maps) <= 3 else maps.roll(1, 0)


class Averages(Odd):
    """Takes a running mean off, which every pass moves before it is used."""

    average: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(6, 1, 1))

    def between(self, maps: Tensor) -> Tensor:
        self.average.mul_(0.5).add_(0.5 * maps.mean((0, 2, 3))[:, None, None])
        return maps - self.average


class Momentum(Odd):
    """Keeps a buffer by assignment, of the pass before, whatever the images."""

    kept: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.ones(6, 1, 1))

    def between(self, maps: Tensor) -> Tensor:
        self.kept = 0.8 * self.kept
        return maps * (1 + self.kept)


class Counter(Odd):
    """Counts its passes in a buffer."""

    passes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("passes", torch.zeros(()))

    def between(self, maps: Tensor) -> Tensor:
        self.passes += 1
        return maps * self.passes


class OnePass(Counter):
    """Breaks in its second pass."""

    def between(self, maps: Tensor) -> Tensor:
        output = super().between(maps)
        if self.passes > 1:
            raise RuntimeError("worn out")
        return output


MIXING = (
    *(BatchMaximum, BatchMean, BatchSoftmax, BatchNormed, BatchUnique, BatchSorted),
    *(NeverTwo, AtMostTwo, Crowded),
)
"""What an image gets depends on the others of its batch, or the batch is refused."""

REMEMBERING = (Averages, Momentum, Counter, OnePass)
"""What an image gets depends on the passes before."""

ODD = (*MIXING, *REMEMBERING)


def alone(network: Odd, images: Tensor) -> Tensor:
    """The scores of each image in a pass of its own of a fresh copy, ``(N, 5)``."""
    return torch.cat([copy.deepcopy(network)(image[None]) for image in images])


def silenced(network: Odd, layer: str, channel: int) -> Odd:
    """A copy whose layer has zeros for that channel."""
    copied = copy.deepcopy(network)
    conv = copied.get_submodule(layer)
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    with torch.no_grad():
        conv.weight[channel], conv.bias[channel] = 0, 0
    return copied
