import numpy as np
import pytest

import hookviz
from hookviz.drawing.overlay import outlined, overlay
from hookviz.types import Crop, InputImage
from tests.conftest import Tiny, as_model, seeded

RED, BLUE = (255, 0, 0), (0, 0, 255)


def test_cells_cover_their_share_of_the_crop_and_nothing_else() -> None:
    image = np.full((100, 200, 3), 50, dtype=np.uint8)
    colours = np.array([[RED, BLUE]], dtype=np.uint8)  # one row, two columns
    crop = Crop(left=50, top=20, right=150, bottom=80, height=60, width=100)
    shown = overlay(image, colours, crop, opacity=1, side=200)
    assert shown.shape == (100, 200, 3)
    assert (shown[20:80, 50:100] == RED).all()
    assert (shown[20:80, 100:150] == BLUE).all()
    outside = np.ones((100, 200), dtype=bool)
    outside[20:80, 50:150] = False
    assert (shown[outside] == 50).all()


def test_opacity_blends() -> None:
    image = np.full((10, 10, 3), 100, dtype=np.uint8)
    colours = np.full((1, 1, 3), 200, dtype=np.uint8)
    crop = Crop(0, 0, 10, 10, 10, 10)
    for opacity, expected in ((0, 100), (0.25, 125), (1, 200)):
        assert (overlay(image, colours, crop, opacity=opacity, side=10) == expected).all()
    with pytest.raises(hookviz.SettingError, match="opacity=2"):
        overlay(image, colours, crop, opacity=2)


def test_a_crop_that_reaches_past_the_image_is_cut_there() -> None:
    image = np.zeros((10, 10, 3), dtype=np.uint8)
    colours = np.array([[RED, BLUE]], dtype=np.uint8)
    shown = overlay(image, colours, Crop(-10, 0, 10, 10, 10, 20), opacity=1, side=10)
    assert (shown == BLUE).all()  # the red half lies outside


def test_a_bright_spot_lands_on_what_made_it_bright() -> None:
    pixels = np.zeros((300, 500, 3), dtype=np.uint8)
    pixels[200:220, 300:320] = 255
    image = InputImage(pixels, "spot", "0")
    model = as_model(seeded(Tiny))
    made = hookviz.prepare(model, image, size=64)
    assert made.picture is not None
    assert made.crop is not None
    shown = overlay(pixels, made.picture, made.crop, opacity=1, side=500)
    rows, columns = np.nonzero(shown[..., 0] > 128)
    assert abs(rows.mean() - 210) < 3
    assert abs(columns.mean() - 310) < 3


def test_a_frame_stands_around_its_pixels_and_leaves_them_as_they_are() -> None:
    picture = np.random.default_rng(0).integers(10, 250, (20, 30, 3), dtype=np.uint8)
    shown = outlined(picture, (5, 10, 8, 14), side=300)
    assert shown.shape == (200, 300, 3)
    np.testing.assert_array_equal(shown[50:80:10, 100:140:10], picture[5:8, 10:14])
    np.testing.assert_array_equal(shown[49, 100:140], np.tile([0x1F, 0x9A, 0x9D], (40, 1)))
    np.testing.assert_array_equal(shown[50:80, 140], np.tile([0x1F, 0x9A, 0x9D], (30, 1)))
    np.testing.assert_array_equal(shown[0, 0], (picture[0, 0] * 0.45).astype(np.uint8))


def test_the_frame_of_a_whole_picture_lies_on_its_border() -> None:
    picture = np.full((10, 10, 3), 200, dtype=np.uint8)
    shown = outlined(picture, (0, 0, 10, 10), side=100)
    assert (shown[0] == (0x1F, 0x9A, 0x9D)).all()
    assert (shown[5:95, 5:95] == 200).all()


def test_a_field_that_sees_nothing_of_the_picture_shows_nothing_bright() -> None:
    picture = np.full((10, 10, 3), 200, dtype=np.uint8)
    shown = outlined(picture, (0, 0, 0, 4), side=100)
    assert (shown[20:] == 90).all()
