import io

import numpy as np
import pytest
from PIL import Image

from hookviz.atlas.patches import Box, Original, boxes_in_original, decode_patch
from hookviz.errors import HookVizError
from hookviz.types import Crop, Pixels
from tests.pictures import encoded, picture

PIXELS = np.asarray(picture(3, width=300, height=200))


def box_in_original(field: tuple[float, ...], crop: Crop | None, image: Pixels) -> Box | None:
    nothing = (5.0, 5.0, 5.0, 9.0)
    first, box, last = boxes_in_original(np.array([nothing, field, nothing]), crop, image)
    assert first is last is None
    return box


def test_a_field_lies_in_the_original_where_the_crop_says() -> None:
    crop = Crop(left=50.0, top=0.0, right=250.0, bottom=200.0, height=100, width=100)
    assert box_in_original((0, 0, 100, 100), crop, PIXELS) == (0, 50, 200, 250)
    assert box_in_original((10, 20, 13, 21), crop, PIXELS) == (20, 90, 26, 92)
    fine = Crop(left=0.0, top=0.0, right=30.0, bottom=20.0, height=64, width=96)
    assert box_in_original((1, 1, 2, 2), fine, PIXELS) == (0, 0, 1, 1)
    beyond = Crop(left=-100.0, top=-100.0, right=400.0, bottom=300.0, height=50, width=50)
    assert box_in_original((0, 0, 50, 50), beyond, PIXELS) == (0, 0, 200, 300)
    assert box_in_original((0, 0, 5, 5), beyond, PIXELS) is None  # black beside the image
    assert box_in_original((0, 0, 0, 0), crop, PIXELS) is None
    assert box_in_original((4, 4, 5, 5), None, PIXELS) == (0, 0, 200, 300)


def test_a_small_part_is_kept_to_the_pixel_and_a_large_one_shrunk() -> None:
    original = Original(PIXELS)
    small = decode_patch(original.cut((7, 9, 8, 25), 64), 64, "patch")
    np.testing.assert_array_equal(small, PIXELS[7:8, 9:25])
    for box in ((0, 0, 200, 300), (13, 21, 180, 160), (1, 2, 199, 103)):
        top, left, bottom, right = box
        cut = decode_patch(original.cut(box, 48), 48, "patch")
        assert max(cut.shape[:2]) == 48
        ratio = (right - left) / (bottom - top)
        assert abs(cut.shape[1] / cut.shape[0] - ratio) < 0.05 * ratio
        part = Image.fromarray(PIXELS[top:bottom, left:right])
        expected = np.asarray(part.resize((cut.shape[1], cut.shape[0]), Image.Resampling.BOX))
        assert np.abs(cut.astype(int) - expected).mean() < 6  # of 255: JPEG, and another filter


def test_what_is_no_patch_is_refused() -> None:
    large = encoded(Image.new("L", (9000, 9000)), "PNG")
    bitmap = io.BytesIO()
    picture().save(bitmap, "BMP")
    for data in (
        large,
        bitmap.getvalue(),
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        large[:99],
    ):
        with pytest.raises(HookVizError):
            decode_patch(data, 64, "patch")
