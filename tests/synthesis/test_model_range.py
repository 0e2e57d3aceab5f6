import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import functional as F

import hookviz
from hookviz.synthesis.model_range import InputRange, picture_shape, pixels
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
    expected = hookviz.prepare(model, image).tensor
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
