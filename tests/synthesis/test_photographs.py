import numpy as np
import torch

from hookviz.images.samples import samples
from hookviz.synthesis import photographs
from tests.pictures import picture


def test_the_factor_has_the_colours_of_the_photographs_in_the_box() -> None:
    every = np.concatenate([each.reshape(-1, 3) for each in photographs._photographs()])
    assert len(every) == 256 * 256 * sum(sample.kind == "photo" for sample in samples())
    expected = np.cov(every.T)
    factor = photographs.colour_factor().double().numpy()
    covariance = factor @ factor.T
    np.testing.assert_allclose(
        covariance / np.trace(covariance), expected / np.trace(expected), atol=1e-6
    )
    light = factor[:, np.linalg.norm(factor, axis=0).argmax()]
    assert (light > 0.4).all()  # most of it is light and dark


def test_plain_and_back() -> None:
    colours = photographs.colour_factor()
    given = torch.from_numpy(np.array(picture())).movedim(-1, 0)[None] / 255
    back = photographs.to_pictures(photographs.to_plain(given, colours), colours)
    torch.testing.assert_close(back, given.clamp(0.02, 0.98), rtol=0, atol=1e-4)
    grey = torch.zeros(1, 1, 4, 4)
    assert torch.equal(photographs.to_pictures(grey, colours), torch.full_like(grey, 0.5))
    shades = torch.linspace(0.1, 0.9, 16).reshape(1, 1, 4, 4)
    back = photographs.to_pictures(photographs.to_plain(shades, colours), colours)
    torch.testing.assert_close(back, shades)
