import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing.patch_sheet import patch_sheet

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("count", [1, 5, 64])
def test_each_patch_lies_where_the_geometry_says(count: int) -> None:
    patches = [RNG.integers(0, 256, (12, 12, 3), np.uint8) for _ in range(count)]
    sheet = patch_sheet(patches, 12)
    pixels = np.asarray(Image.open(io.BytesIO(sheet.png)))
    for place, patch in enumerate(patches):
        left, top, right, bottom = sheet.geometry.box(place)
        assert np.array_equal(pixels[top:bottom, left:right, :3], patch)
        assert (pixels[top:bottom, left:right, 3] == 255).all()
    assert pixels.shape == (sheet.geometry.height, sheet.geometry.width, 4)


def test_one_that_is_not_there_is_clear_and_any_other_shape_is_cut_square() -> None:
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200  # its middle square
    sheet = patch_sheet([None, wide], 20)
    pixels = np.asarray(Image.open(io.BytesIO(sheet.png)))
    for place, (red, clear) in enumerate(((0, 0), (200, 255))):
        left, top, right, bottom = sheet.geometry.box(place)
        middle = pixels[(top + bottom) // 2, left + 5 : right - 5]  # its edges are blended
        assert (middle[:, 0] == red).all()
        assert (middle[:, 3] == clear).all()
