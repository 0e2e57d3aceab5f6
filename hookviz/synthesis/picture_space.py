"""Define the parameters that a picture is made of, and make the picture of them.

Gradient ascent in the pixels themselves ends in noise. In the spectrum, where every frequency has a
step of its own size, and with colours that are independent, it ends in shapes (Olah et al., 2017).
"""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from hookviz.synthesis import photographs

_START = 0.01  # deviation of the spectrum to begin with: nearly grey


class PictureSpace(Protocol):
    """Protocol of parameters that some pictures are made of."""

    parameters: Tensor
    """Leaf tensor that is optimised; one picture for each index of its first axis."""

    rate: float
    """Learning rate of Adam."""

    def pictures(self) -> Tensor:
        """Make the pictures, ``(N, C, H, W)`` in 0…1, with a graph to `parameters`."""
        ...


class Fourier:
    """Spectrum as real and imaginary parts, each divided by its frequency.

    ``x = σ(F · irfft2(z / max(f, 1 / max(H, W))) / 4)`` with f in cycles a pixel, F the colours
    that go together and σ the logistic function (Olah et al., 2017; lucid's constants).
    """

    rate = 0.05

    def __init__(self, shape: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin with noise.

        Args:
            shape: ``(C, H, W)`` of each picture.
            seeds: of each picture; equal seeds begin with the same.
        """
        channels, *self._size = shape
        half = (channels, self._size[0], self._size[1] // 2 + 1, 2)
        parameters = [torch.randn(half, generator=torch.Generator().manual_seed(s)) for s in seeds]
        self.parameters = (_START * torch.stack(parameters)).requires_grad_()
        self._scale = frequency_scale(self._size)

    @classmethod
    def of(cls, pictures: Tensor) -> "Fourier":
        """Begin with pictures, ``(N, C, H, W)`` in 0…1, of any precision."""
        space = cls(pictures.shape[1:], range(len(pictures)))
        plain = photographs.to_plain(pictures.float(), photographs.colour_factor())
        space.parameters = spectrum_of(plain, space._scale).requires_grad_()
        return space

    def pictures(self) -> Tensor:
        """Make the pictures, ``(N, C, H, W)`` in 0…1, with a graph to `parameters`."""
        scale = self._scale.to(self.parameters.device)
        return _pictures(from_spectrum(self.parameters, scale, self._size))


class FixedMagnitudeSpectrum:
    """Spectrum with free phases and the magnitude of photographs: MACO (Fel et al., 2023).

    ``x = σ(F · irfft2(m · exp(iφ)))`` with m of `photographs.magnitudes`. With no freedom in the
    magnitude a picture can't turn into high frequencies, after however many steps.
    """

    rate = 0.1

    def __init__(self, shape: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin with random phases, as `Fourier` does."""
        channels, *self._size = shape
        magnitudes = photographs.magnitudes(max(self._size))
        if self._size[0] != self._size[1] or channels not in (1, 3):
            raise ValueError(f"no spectrum of photographs has {channels} channels and {self._size}")
        self._magnitude = magnitudes if channels == 3 else magnitudes[:1]
        turns = [
            torch.rand(self._magnitude.shape, generator=torch.Generator().manual_seed(s))
            for s in seeds
        ]
        self.parameters = (2 * math.pi * torch.stack(turns)).requires_grad_()

    def pictures(self) -> Tensor:
        """Make the pictures, ``(N, C, H, W)`` in 0…1, with a graph to `parameters`."""
        magnitude = self._magnitude.to(self.parameters.device)
        return _pictures(from_phases(self.parameters, magnitude, self._size))


def _pictures(plain: Tensor) -> Tensor:
    return photographs.to_pictures(plain, photographs.colour_factor().to(plain))


def frequency_scale(size: Sequence[int]) -> Tensor:
    """Return how much each frequency counts, ``(H, W // 2 + 1)``: low ones most."""
    height, width = size
    rows, columns = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)
    return 1 / torch.sqrt(rows**2 + columns**2).clamp(min=1 / max(height, width))


def from_spectrum(parameters: Tensor, scale: Tensor, size: Sequence[int]) -> Tensor:
    """Make ``(N, C, H, W)`` without bounds of real and imaginary parts (Olah et al., 2017)."""
    spectrum = torch.view_as_complex(parameters * scale[..., None])
    plain: Tensor = torch.fft.irfft2(spectrum, s=size, norm="ortho") / 4  # so a step is no leap
    return plain


def spectrum_of(plain: Tensor, scale: Tensor) -> Tensor:
    """Return the real and imaginary parts, ``(N, C, H, W // 2 + 1, 2)``, of ``(N, C, H, W)``."""
    spectrum = torch.fft.rfft2(4 * plain, norm="ortho") / scale
    return torch.view_as_real(spectrum).contiguous()


def from_phases(phases: Tensor, magnitude: Tensor, size: Sequence[int]) -> Tensor:
    """Make ``(N, C, H, W)`` without bounds of phases and one magnitude (Fel et al., 2023)."""
    spectrum = torch.polar(magnitude.expand_as(phases), phases)
    plain: Tensor = torch.fft.irfft2(spectrum, s=size, norm="ortho")
    return plain
