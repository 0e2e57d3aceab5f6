"""Define the parameters that a picture is made of, and convert pictures to a network's inputs.

Gradient ascent in the pixels themselves ends in noise. In the spectrum, where every frequency has a
step of its own size, and with colours that are independent, it ends in shapes (Olah et al., 2017).

The colours, and the spectrum that MACO holds, are those of the photographs that ship with HookViz
(assets/README.md has their sources), so nobody needs to trust a table of numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace
from hookviz.drawing.pictures import resize
from hookviz.errors import HookVizError, ModelError
from hookviz.images.preprocess import pixel_values
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.types import Model, Pixels, Preprocess
from hookviz.wording import times


@dataclass(frozen=True, eq=False)
class InputRange:
    """Range of a model's inputs from black to white, per channel.

    Attributes:
        low: ``(C, 1, 1)``, what 0 becomes.
        high: ``(C, 1, 1)``, what 1 becomes.
    """

    low: Tensor = field(repr=False)
    high: Tensor = field(repr=False)

    @classmethod
    def of(cls, model: Model, shape: Sequence[int]) -> "InputRange":
        """Return the range of a model's own preprocessing.

        A function is asked: by what it makes of a black and of a white picture.
        """
        if isinstance(model.preprocess, Preprocess):
            mean, std = (
                torch.tensor(numbers)[:, None, None]
                for numbers in (model.preprocess.mean, model.preprocess.std)
            )
            if len(mean) == shape[0]:
                return cls(-mean / std, (1 - mean) / std)
            return cls(torch.zeros(shape[0], 1, 1), torch.ones(shape[0], 1, 1))
        ends = []
        for level in (0, 255):
            flat = Image.new("RGB", (shape[2], shape[1]), (level,) * 3)
            tensor = pixel_values(model.preprocess(flat))
            ends.append(tensor.float().reshape(shape[0], -1).mean(1)[:, None, None])
        return cls(*ends)

    def to_input(self, pictures: Tensor) -> Tensor:
        """Convert pictures of 0…1, ``(N, C, H, W)``, to inputs of the network."""
        low, high = (end.to(pictures.device) for end in (self.low, self.high))
        return low + pictures * (high - low)

    def to_picture(self, inputs: Tensor) -> Tensor:
        """Convert inputs back to pictures, within black and white."""
        span = self.high - self.low
        return ((inputs.cpu() - self.low) / torch.where(span == 0, 1, span)).clamp(0, 1)


def picture_shape(model: Model, size: int | None) -> tuple[int, int, int]:
    """Return ``(C, H, W)`` of pictures: `size` pixels a side where a model takes that, or its own.

    A network that is made for one size, by its last layers, gets that size.

    Raises:
        HookVizError: the model takes no pictures in grey or in red, green and blue.
    """
    own = own_shape(model)
    if len(own) != 3 or own[0] not in (1, 3):
        raise HookVizError(
            say(
                "{model} takes {shape}, which is no picture in grey (1×H×W) or in red, green "
                "and blue (3×H×W): there is nothing to draw for it.",
                model=model.title,
                shape=times(own),
            )
        )
    if size is None or model.input_shape:
        return own[0], own[1], own[2]
    wanted = own[0], max(size, model.min_size), max(size, model.min_size)
    try:
        layer_trace(model, wanted)
    except ModelError:
        return own[0], own[1], own[2]
    return wanted


def pixels(pictures: Tensor) -> tuple[Pixels, ...]:
    """Convert pictures of 0…1, ``(N, C, H, W)``, to RGB, uint8, ``(H, W, 3)`` each."""
    levels = (pictures.detach().cpu().clamp(0, 1) * 255).round().to(torch.uint8)
    colour = levels.expand(-1, 3, -1, -1) if levels.shape[1] == 1 else levels
    return tuple(np.ascontiguousarray(picture.movedim(0, -1).numpy()) for picture in colour)


_SIDE = 256  # pixels to which each photograph is cropped

_START = 0.01  # deviation of the spectrum to begin with: nearly grey


@cache
def colour_factor() -> Tensor:
    """Return F, ``(3, 3)``: F Fᵀ is the covariance of red, green and blue, to a factor.

    Its longest column has norm 1. Independent noise times F has the colours of photographs:
    mostly light and dark, then blue and yellow. Such are the decorrelated colours of Olah et
    al. (2017), Feature Visualization.
    """
    colours = np.concatenate([photograph.reshape(-1, 3) for photograph in _photographs()])
    values, vectors = np.linalg.eigh(np.cov(colours.T))
    factor = vectors * np.sqrt(np.maximum(values, 0))
    # an eigenvector's sign is a matter of the library; the largest part is positive here
    factor *= np.sign(factor[np.abs(factor).argmax(0), range(3)])
    with torch.inference_mode(mode=False):  # it is kept, for runs with gradients too
        return torch.from_numpy(factor / np.linalg.norm(factor, axis=0).max()).float()


@cache
def magnitudes(size: int) -> Tensor:
    """Return the mean magnitudes of spectra, ``(3, size, size // 2 + 1)``, as `to_plain` has them.

    Norm "ortho" of `torch.fft.rfft2`, equal in all directions; frequency 0, the mean colour, as
    strong as any other.
    """
    with torch.inference_mode(mode=False), torch.no_grad():
        small = torch.stack([_resized(photograph, size) for photograph in _photographs()])
        plain = to_plain(small, colour_factor())
        magnitude = averaged_over_angle(torch.fft.fft2(plain, norm="ortho").abs().mean(0))
        return magnitude[..., : size // 2 + 1].contiguous()


def averaged_over_angle(magnitude: Tensor) -> Tensor:
    """Spread the energy of each ring of frequencies evenly over it, ``(C, S, S)`` of `fft2`.

    The left edge of a photograph does not go on at its right one, nor the top at the bottom. A
    transform takes these leaps for edges, and puts a cross on the axes of the spectrum, of which
    come streaks along rows and columns.
    """
    steps = torch.fft.fftfreq(magnitude.shape[-1], 1 / magnitude.shape[-1])
    ring = torch.hypot(steps[:, None], steps).round().long().flatten()
    energy = magnitude.new_zeros(len(magnitude), int(ring.max()) + 1)
    energy.index_add_(1, ring, magnitude.flatten(1).square())
    even: Tensor = (energy / ring.bincount())[:, ring].sqrt()
    return even.reshape(magnitude.shape)


def to_plain(pictures: Tensor, colours: Tensor) -> Tensor:
    """Take pictures, ``(…, C, H, W)`` in 0…1, to no bounds and, of three, independent channels."""
    logits = pictures.clamp(0.02, 0.98).logit()  # those of 0 and 1 are infinite
    if logits.shape[-3] != 3:
        return logits
    return torch.einsum("dc,...chw->...dhw", colours.inverse(), logits)


def to_pictures(plain: Tensor, colours: Tensor) -> Tensor:
    """Bring what has no bounds, ``(…, C, H, W)``, to 0…1, with the colours of photographs."""
    if plain.shape[-3] == 3:
        plain = torch.einsum("cd,...dhw->...chw", colours, plain)
    return plain.sigmoid()


def _resized(photograph: NDArray[np.float64], size: int) -> Tensor:
    """Resize to ``(3, size, size)`` in 0…1."""
    small = resize(np.rint(photograph * 255).astype(np.uint8), (size, size))
    return torch.from_numpy(small.astype(np.float32) / 255).movedim(-1, 0)


@cache
def _photographs() -> tuple[NDArray[np.float64], ...]:
    """Load the photographs in the box, ``(256, 256, 3)`` in 0…1."""
    photographs = []
    for sample in samples():
        if sample.kind == "photo":
            with Image.open(sample.path) as image:
                image.draft("RGB", (_SIDE, _SIDE))
                square = ImageOps.fit(image.convert("RGB"), (_SIDE, _SIDE))
            photographs.append(np.asarray(square, np.float64) / 255)
    return tuple(photographs)


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

        `shape` is the ``(C, H, W)`` of each picture; equal seeds begin with the same noise.
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
        plain = to_plain(pictures.float(), colour_factor())
        space.parameters = spectrum_of(plain, space._scale).requires_grad_()
        return space

    def pictures(self) -> Tensor:
        """Make the pictures, ``(N, C, H, W)`` in 0…1, with a graph to `parameters`."""
        scale = self._scale.to(self.parameters.device)
        return _pictures(from_spectrum(self.parameters, scale, self._size))


class FixedMagnitudeSpectrum:
    """Spectrum with free phases and the magnitude of photographs: MACO (Fel et al., 2023).

    ``x = σ(F · irfft2(m · exp(iφ)))`` with m of `magnitudes`. With no freedom in the
    magnitude a picture can't turn into high frequencies, after however many steps.
    """

    rate = 0.1

    def __init__(self, shape: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin with random phases, as `Fourier` does."""
        channels, *self._size = shape
        mean = magnitudes(max(self._size))
        if self._size[0] != self._size[1] or channels not in (1, 3):
            raise ValueError(f"no spectrum of photographs has {channels} channels and {self._size}")
        self._magnitude = mean if channels == 3 else mean[:1]
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
    return to_pictures(plain, colour_factor().to(plain))


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
