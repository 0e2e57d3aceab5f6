"""Networks whose best picture is known."""

import math

import torch
from torch import Tensor, nn

import hookviz
from hookviz.types import Model, Preprocess

SIDE = 32


def model_of(network: nn.Module, side: int = SIDE) -> Model:
    """A model whose inputs are pictures less 0.5."""
    plain = Preprocess(side, side, (0.5, 0.5, 0.5), (1.0, 1.0, 1.0))
    return hookviz.wrap(network, plain)


def gabor(phase: float, side: int = SIDE) -> Tensor:
    """A wave under a bell, in orange and blue, ``(3, side, side)``, of norm 1."""
    rows, columns = torch.meshgrid(*(torch.linspace(-1, 1, side),) * 2, indexing="ij")
    along = 0.8 * rows + 0.6 * columns
    wave = torch.cos(2 * math.pi * 2 * along + phase) * torch.exp(-(rows**2 + columns**2) / 0.18)
    colours = torch.tensor([1.0, 0.5, -0.6])[:, None, None] * wave
    kernel: Tensor = colours / colours.norm()
    return kernel


class Filter(nn.Module):
    """One linear filter as large as the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, SIDE, bias=False)
        with torch.no_grad():
            self.conv.weight.copy_(gabor(0.3)[None])

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.conv(images).flatten(1)
        return scores


def correlation(picture: Tensor, other: Tensor) -> float:
    """Pearson's, over all values."""
    both = torch.stack([picture.flatten().double(), other.flatten().double()])
    return float(torch.corrcoef(both)[0, 1])


def normalised(pictures: Tensor, model: Model) -> Tensor:
    steps = model.preprocess
    assert isinstance(steps, Preprocess)
    mean, std = (torch.tensor(each)[:, None, None] for each in (steps.mean, steps.std))
    return (pictures - mean) / std
