import numpy as np
import pytest
import torch

from hookviz.synthesis import photographs
from hookviz.synthesis.picture_space import FixedMagnitudeSpectrum, Fourier
from tests.pictures import picture


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
                "dc,nchw->ndhw", photographs.colour_factor().inverse(), space.pictures().logit()
            ),
            norm="ortho",
        ).abs()
    inner = (slice(None), slice(1, 16), slice(1, 16))  # where a phase is free of its mirror image
    torch.testing.assert_close(
        spectrum[0][inner], photographs.magnitudes(32)[inner], rtol=1e-2, atol=1e-3
    )
