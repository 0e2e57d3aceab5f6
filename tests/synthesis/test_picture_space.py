import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor, nn
from torchvision.transforms import functional as F

import hookviz
from hookviz.drawing.pictures import resize
from hookviz.images.samples import samples
from hookviz.synthesis import picture_space
from hookviz.synthesis.picture_space import (
    FixedMagnitudeSpectrum,
    Fourier,
    InputRange,
    picture_shape,
    pixels,
)
from hookviz.types import Model
from tests.networks import Tiny, as_model, seeded
from tests.pictures import picture


def own_steps(image: Image.Image) -> Tensor:
    levels: Tensor = F.to_tensor(image.resize((16, 16)))
    normalised: Tensor = F.normalize(levels, [0.2, 0.3, 0.4], [0.5, 0.6, 0.7])
    return normalised


@pytest.mark.parametrize("own", [False, True])
def test_a_picture_becomes_what_the_model_makes_of_it(own: bool) -> None:
    model = hookviz.wrap(seeded(Tiny), own_steps) if own else as_model(seeded(Tiny))
    image = picture(width=16, height=16)
    expected = hookviz.prepare_input(model, image).tensor
    levels = torch.from_numpy(np.array(image)).movedim(-1, 0)[None] / 255
    span = InputRange.of(model, (3, 16, 16))
    torch.testing.assert_close(span.to_input(levels), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(span.to_picture(expected), levels, rtol=0, atol=1e-5)


def test_a_network_for_one_size_gets_that_size_and_others_what_is_asked(tiny: Model) -> None:
    assert picture_shape(tiny, 24) == (3, 24, 24)
    assert picture_shape(tiny, None) == (3, 16, 16)
    one_size = nn.Sequential(nn.Conv2d(3, 2, 3, padding=1), nn.Flatten(), nn.Linear(512, 3))
    assert picture_shape(as_model(one_size), 64) == (3, 16, 16)


def test_what_is_no_picture_is_told() -> None:
    model = hookviz.wrap(nn.Sequential(nn.Conv1d(1, 2, 3)), example=(torch.zeros(1, 1, 50),))
    with pytest.raises(hookviz.HookVizError, match="takes 1×50, which is no picture"):
        picture_shape(model, 64)


def test_pixels_are_rounded_and_grey_has_three_channels() -> None:
    (grey,) = pixels(torch.full((1, 1, 2, 3), 0.5))
    assert grey.shape == (2, 3, 3)
    assert grey.dtype == np.uint8
    assert (grey == 128).all()


def test_the_factor_has_the_colours_of_the_photographs_in_the_box() -> None:
    every = np.concatenate([each.reshape(-1, 3) for each in picture_space._photographs()])
    assert len(every) == 256 * 256 * sum(sample.kind == "photo" for sample in samples())
    expected = np.cov(every.T)
    factor = picture_space.colour_factor().double().numpy()
    covariance = factor @ factor.T
    np.testing.assert_allclose(
        covariance / np.trace(covariance), expected / np.trace(expected), atol=1e-6
    )
    light = factor[:, np.linalg.norm(factor, axis=0).argmax()]
    assert (light > 0.4).all()  # most of it is light and dark


def test_plain_and_back() -> None:
    colours = picture_space.colour_factor()
    given = torch.from_numpy(np.array(picture())).movedim(-1, 0)[None] / 255
    back = picture_space.to_pictures(picture_space.to_plain(given, colours), colours)
    torch.testing.assert_close(back, given.clamp(0.02, 0.98), rtol=0, atol=1e-4)
    grey = torch.zeros(1, 1, 4, 4)
    assert torch.equal(picture_space.to_pictures(grey, colours), torch.full_like(grey, 0.5))
    shades = torch.linspace(0.1, 0.9, 16).reshape(1, 1, 4, 4)
    back = picture_space.to_pictures(picture_space.to_plain(shades, colours), colours)
    torch.testing.assert_close(back, shades)


@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 8, 13), (3, 9, 8)])
def test_spectrum_makes_pictures_of_the_size(shape: tuple[int, ...]) -> None:
    space = Fourier(shape, (0, 0, 1))
    pictures = space.pictures()
    assert pictures.shape == (3, *shape)
    assert torch.equal(pictures[0], pictures[1])
    assert not torch.equal(pictures[0], pictures[2])
    assert bool(((pictures > 0) & (pictures < 1)).all())
    gradient = torch.autograd.grad(pictures.sum(), space.parameters)[0]
    assert bool(gradient.any())


def test_a_picture_to_begin_with_is_that_picture() -> None:
    given = torch.from_numpy(np.array(picture())).movedim(-1, 0)[None] / 255
    space = Fourier.of(given)
    torch.testing.assert_close(space.pictures(), given.clamp(0.02, 0.98), rtol=0, atol=1e-3)
    assert space.parameters.is_leaf
    assert space.parameters.requires_grad


def test_held_magnitudes_stay_those_of_photographs() -> None:
    space = FixedMagnitudeSpectrum((3, 32, 32), (4,))
    with torch.no_grad():
        space.parameters += torch.randn(space.parameters.shape)  # wherever the optimization leads
        spectrum = torch.fft.rfft2(
            torch.einsum(
                "dc,nchw->ndhw", picture_space.colour_factor().inverse(), space.pictures().logit()
            ),
            norm="ortho",
        ).abs()
    inner = (slice(None), slice(1, 16), slice(1, 16))  # where a phase is free of its mirror image
    torch.testing.assert_close(
        spectrum[0][inner], picture_space.magnitudes(32)[inner], rtol=1e-2, atol=1e-3
    )


@pytest.mark.parametrize("size", [33, 64])
def test_held_magnitudes_have_no_cross_and_the_energy_of_the_photographs(size: int) -> None:
    """The edges of a photograph, which do not meet, put a cross on its own spectrum."""
    colours = picture_space.colour_factor().double().inverse().numpy()
    seen = []
    for sample in samples():
        if sample.kind == "photo":
            with Image.open(sample.path) as image:
                image.draft("RGB", (256, 256))
                square = ImageOps.fit(image.convert("RGB"), (256, 256))
            small = resize(np.asarray(square), (size, size)) / 255
            logits = np.log(small.clip(0.02, 0.98) / (1 - small.clip(0.02, 0.98)))
            seen.append(np.abs(np.fft.fft2(logits @ colours.T, axes=(0, 1), norm="ortho")))
    given = np.mean(seen, 0).transpose(2, 0, 1)
    half = picture_space.magnitudes(size).double().numpy()
    held = np.abs(np.fft.fft2(np.fft.irfft2(half, s=(size, size))))  # all of the plane
    rows, columns = np.meshgrid(*(2 * [np.fft.fftfreq(size, 1 / size)]), indexing="ij")
    radius = np.hypot(rows, columns)
    apart = np.degrees(np.arctan2(np.abs(rows), np.abs(columns)))
    inside = (radius > size / 8) & (radius < size / 2)
    axes = inside & (np.minimum(apart, 90 - apart) < 4)
    diagonals = inside & (np.abs(apart - 45) < 4)

    def cross(magnitude: NDArray[np.float64]) -> float:
        level = magnitude.mean(0) * radius  # which falls as 1 / f in photographs
        return float(level[axes].mean() / level[diagonals].mean())

    assert cross(given) > 1.5
    assert cross(held) == pytest.approx(1, abs=0.05)
    for ring in range(round(radius.max()) + 1):
        there = np.round(radius) == ring
        energy, energy_given = ((each[:, there] ** 2).sum(1) for each in (held, given))
        np.testing.assert_allclose(energy, energy_given, rtol=1e-4)
