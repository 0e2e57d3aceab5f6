"""Shift, turn and scale pictures a little before each pass: transformation robustness.

What excites a unit at one position to the pixel is an accident of the network's strides. A picture
that works wherever it lies is robust (Olah et al., 2017), and shows more.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Robustness:
    """Random transformations before each pass, at most this far, that a picture has to stand.

    Attributes:
        shift: to each side, as a share of the side.
        scale: larger or smaller, as a share.
        degrees: turned to either side.
    """

    shift: float = 1 / 16
    scale: float = 0.1
    degrees: float = 10.0

    @property
    def is_none(self) -> bool:
        """Whether pictures stay as they are."""
        return not (self.shift or self.scale or self.degrees)

    def of(self, pictures: Tensor, generator: torch.Generator) -> Tensor:
        """Transform the pictures, ``(N, C, H, W)``, all alike, on grey.

        Args:
            pictures: ``(N, C, H, W)`` in 0…1.
            generator: of random numbers, on the CPU.
        """
        if self.is_none:
            return pictures
        return moved(pictures, generator, self.shift, self.scale, self.degrees)


def moved(
    pictures: Tensor, generator: torch.Generator, shift: float, scale: float, degrees: float
) -> Tensor:
    """Shift, scale and turn pictures of 0…1, ``(N, C, H, W)``, all alike, on grey."""
    right, down, larger, turned = (2 * torch.rand(4, generator=generator) - 1).tolist()
    angle, zoom = math.radians(turned * degrees), 1 / (1 + larger * scale)
    sine, cosine = zoom * math.sin(angle), zoom * math.cos(angle)
    height, width = pictures.shape[-2:]
    # sampling coordinates run from −1 to 1 on either axis, so a turn needs the side ratio
    matrix = torch.tensor(
        [
            [cosine, -sine * height / width, 2 * right * shift],
            [sine * width / height, cosine, 2 * down * shift],
        ],
        device=pictures.device,
    )
    size = list(pictures.shape)
    grid = nn.functional.affine_grid(matrix.expand(len(pictures), 2, 3), size, False)
    return nn.functional.grid_sample(pictures - 0.5, grid, align_corners=False) + 0.5


SLIGHT = Robustness()
"""Default transformations that pictures have to stand."""

NONE = Robustness(0, 0, 0)
"""No transformation: pictures stay as they are."""
