import numpy as np
import torch

from hookviz.capturing.inputs import prepare
from hookviz.drawing.resizing import enlarged, input_thumbnail, thumbnail
from hookviz.types import Model
from tests.pictures import picture


def test_it_is_the_middle_square() -> None:
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = (10, 20, 30)
    small = thumbnail(wide, 5)
    assert small.shape == (5, 5, 3)
    assert (small[2, 2] == (10, 20, 30)).all()


def test_an_input_without_a_picture_is_grey_from_its_least_to_its_largest(tiny: Model) -> None:
    values = torch.zeros(1, 3, 16, 16)
    values[..., 8:] = 5
    small = input_thumbnail(prepare(tiny, values), 16)
    assert (small[8, 0] == 0).all()
    assert (small[8, 15] == 255).all()
    seen = prepare(tiny, picture())
    assert seen.picture is not None
    np.testing.assert_array_equal(input_thumbnail(seen, 16), seen.picture)


def test_small_pictures_grow_and_large_ones_stay() -> None:
    small = np.zeros((64, 128, 3), np.uint8)
    small[:, 64:] = 255
    grown = enlarged(small)
    assert grown.shape == (192, 384, 3)
    assert not grown[:, :180].any()
    assert (grown[:, 204:] == 255).all()
    large = np.zeros((500, 20, 3), np.uint8)
    assert enlarged(large) is large
