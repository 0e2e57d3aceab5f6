"""Compute what photographs are like on average: their colour correlations and their spectrum.

Both come from the photographs that ship with HookViz (assets/README.md has their sources), so
nobody needs to trust a table of numbers.
"""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from hookviz.drawing.pictures import resize
from hookviz.images.samples import samples

_SIDE = 256  # pixels to which each photograph is cropped


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
