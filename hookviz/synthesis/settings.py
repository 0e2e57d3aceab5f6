"""Choose how pictures are made: how large, from which seed, robust to what.

Transformation robustness shifts, turns and scales pictures a little before each pass. What excites
a unit at one position to the pixel is an accident of the network's strides. A picture that works
wherever it lies is robust (Olah et al., 2017), and shows more.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hookviz.deprecated import RenamedAttribute, renamed_keyword
from hookviz.errors import SettingError, one_of
from hookviz.language.saying import mark, say

SPACES = (mark("Fourier"), "MACO")
PENALTIES = (mark("none"), mark("total variation"), "L2")
MOST_STEPS, MOST_PICTURES = 4096, 64
SIZES = 32, 512


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

    def of(self, pictures: Tensor, generator: torch.Generator) -> Tensor:
        """Transform the pictures, ``(N, C, H, W)``, all alike, on grey.

        Pictures are ``(N, C, H, W)`` in 0…1; the generator is on the CPU.
        """
        if not (self.shift or self.scale or self.degrees):
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


@renamed_keyword("disturbance", "robustness")
@dataclass(frozen=True, slots=True)
class MaximizationConfig:
    """Settings that a picture depends on beside the model and its goal.

    Equal methods make equal pictures, bit for bit on one machine with as many threads, however
    often the work was stopped and continued.

    Attributes:
        size: side of the pictures in pixels; None for the model's own.
        seed: of the noise that is begun with, and of every step's transformations.
        space: ``"Fourier"``, or ``"MACO"``, which holds the spectrum to that of photographs.
        robustness: the transformations that a picture has to stand.
        penalty: ``"total variation"`` for smooth pictures, ``"L2"`` for grey ones.
        strength: what the penalty counts, where the goal counts in units of its layer's spread.
        diversity: how much pictures of one goal avoid each other, by their Gram matrices.
        rate: how far a step goes, times that of the space.
    """

    size: int | None = 128
    seed: int = 0
    space: str = mark("Fourier")
    robustness: Robustness = SLIGHT
    penalty: str = "none"
    strength: float = 1.0
    diversity: float = 0.0
    rate: float = 1.0

    disturbance = RenamedAttribute("robustness")

    def check(self) -> None:
        """Check that every setting means something.

        Raises:
            SettingError: one does not.
        """
        one_of(say("space"), self.space, SPACES)
        one_of(say("penalty"), self.penalty, PENALTIES)
        low, high = SIZES
        if self.size is not None and not low <= self.size <= high:
            raise SettingError(
                say(
                    "size={size}: pictures have {low} to {high} pixels a side.",
                    size=self.size,
                    low=low,
                    high=high,
                )
            )
        if not 0 <= self.seed < 2**31:
            raise SettingError(
                say(
                    "seed={seed} is not a whole number from 0 to {limit}.",
                    seed=self.seed,
                    limit=2**31 - 1,
                )
            )
        for name in ("strength", "diversity", "rate"):
            if not 0 <= getattr(self, name) <= 1000:
                raise SettingError(
                    say(
                        "{name}={value} is not a number from 0 to 1000.",
                        name=name,
                        value=getattr(self, name),
                    )
                )
