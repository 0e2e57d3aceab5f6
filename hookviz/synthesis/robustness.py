"""Shift, turn and scale pictures a little before each pass: transformation robustness.

What excites a unit at one position to the pixel is an accident of the network's strides. A picture
that works wherever it lies is robust (Olah et al., 2017), and shows more.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_GREY = 0.5  # what lies around a picture


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
        right, down, larger, turned = (2 * torch.rand(4, generator=generator) - 1).tolist()
        angle = math.radians(turned * self.degrees)
        zoom = 1 / (1 + larger * self.scale)
        height, width = pictures.shape[-2:]
        sine, cosine = zoom * math.sin(angle), zoom * math.cos(angle)
        # sampling coordinates run from −1 to 1 on either axis, so a turn needs the side ratio
        moved = torch.tensor(
            [
                [cosine, -sine * height / width, 2 * right * self.shift],
                [sine * width / height, cosine, 2 * down * self.shift],
            ],
            device=pictures.device,
        )
        grid = F.affine_grid(moved.expand(len(pictures), 2, 3), list(pictures.shape), False)
        return F.grid_sample(pictures - _GREY, grid, align_corners=False) + _GREY


SLIGHT = Robustness()
"""Default transformations that pictures have to stand."""

NONE = Robustness(0, 0, 0)
"""No transformation: pictures stay as they are."""
