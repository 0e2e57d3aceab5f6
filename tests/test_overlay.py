import numpy as np
import pytest

import hookviz
from hookviz.overlay import overlay
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
