import numpy as np
import pytest
import torch

import hookviz
from hookviz.capturing import inputs
from hookviz.drawing.overlay import (
    color_limit,
    framed,
    input_thumbnail,
    on_input,
    on_picture,
    over_image,
    overlay,
    resized,
)
from hookviz.images import reading
from hookviz.types import Crop, InputImage, Model
from tests.networks import Tiny, as_model, seeded
from tests.pictures import picture

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
    past = overlay(image, colours, Crop(-200, 0, 200, 100, 10, 20), opacity=1, side=200)
    assert (past == BLUE).all()  # the red half lies outside
    grey = np.full((1, 1, 3), 200, dtype=np.uint8)
    for opacity, expected in ((0, 50), (0.3, 95), (1, 200)):
        blended = overlay(image, grey, Crop(0, 0, 200, 100, 10, 20), opacity=opacity, side=200)
        assert (blended == expected).all()
    with pytest.raises(hookviz.SettingError, match="opacity=2"):
        overlay(image, grey, crop, opacity=2)


def test_a_bright_spot_lands_on_what_made_it_bright() -> None:
    pixels = np.zeros((300, 500, 3), dtype=np.uint8)
    pixels[200:220, 300:320] = 255
    image = InputImage(pixels, "spot", "0")
    model = as_model(seeded(Tiny))
    seen = hookviz.prepare_input(model, image, size=64)
    assert seen.picture is not None
    assert seen.crop is not None
    shown = overlay(pixels, seen.picture, seen.crop, opacity=1, side=500)
    rows, columns = np.nonzero(shown[..., 0] > 128)
    assert abs(rows.mean() - 210) < 3
    assert abs(columns.mean() - 310) < 3


def test_over_the_input_covers_all_of_it_and_over_the_image_the_crop_alone() -> None:
    model = as_model(seeded(Tiny))
    seen = hookviz.prepare_input(model, picture(width=60, height=30), whole=True)
    red = np.array([[(255, 0, 0), (0, 0, 255)]], np.uint8)
    shown = over_image(seen, None, red, opacity=1)
    assert shown.shape == (320, 640, 3)
    assert (shown[:, :320] == (255, 0, 0)).all()
    assert (shown[:, 320:] == (0, 0, 255)).all()
    image = reading.read(picture(width=64, height=32))
    seen = inputs.prepare_input(model, image)
    red = np.array([[(255, 0, 0)]], np.uint8)
    shown = over_image(seen, image, red, opacity=1)
    covered = (shown == (255, 0, 0)).all(2)
    assert shown.shape == (320, 640, 3)
    assert covered[:, 160:480].all()
    assert not covered[:, :160].any()
    assert not covered[:, 480:].any()


def test_a_resized_map_is_linear_between_the_middles_of_its_cells() -> None:
    smooth = resized(np.array([[0.0, 4.0], [8.0, 12.0]]), 4, 8)
    across = [0.0, 0.0, 0.5, 1.5, 2.5, 3.5, 4.0, 4.0]
    down = [0.0, 2.0, 6.0, 8.0]
    np.testing.assert_allclose(smooth, np.add.outer(down, across))


def test_the_end_colour_stands_for_a_percentile_of_what_is_finite() -> None:
    values = np.arange(-100.0, 1.0).reshape(1, -1)
    assert color_limit(values) == 100
    assert color_limit(values, 99) == 99
    assert color_limit(np.array([[np.nan, np.inf, -3.0]])) == 3
    assert color_limit(np.eye(20), 50) == 1  # most are 0
    assert color_limit(np.zeros((2, 2))) == 1
    assert color_limit(np.full((2, 2), np.nan)) == 1


def test_an_input_without_a_picture_is_grey_from_its_least_to_its_largest(tiny: Model) -> None:
    values = torch.zeros(1, 3, 16, 16)
    values[..., 8:] = 5
    small = input_thumbnail(inputs.prepare_input(tiny, values), 16)
    assert (small[8, 0] == 0).all()
    assert (small[8, 15] == 255).all()
    assert (small[..., 0] == small[..., 1]).all()
    assert not input_thumbnail(inputs.prepare_input(tiny, torch.zeros(1, 3, 16, 16)), 16).any()
    seen = inputs.prepare_input(tiny, picture())
    assert seen.picture is not None
    np.testing.assert_array_equal(input_thumbnail(seen, 16), seen.picture)


def test_a_frame_is_white_inside_black_and_touches_nothing_else() -> None:
    picture = np.full((40, 60, 3), 128, np.uint8)
    shown = framed(picture, (10, 20, 20, 40))
    assert (shown[10:20, 20:40] == 128).all()
    assert (shown[8, 20:40] == 255).all()
    assert (shown[6, 20:40] == 0).all()
    assert (picture == 128).all()
    assert (shown[:6] == 128).all()
    assert (shown[24:] == 128).all()
    assert framed(picture, (0, 0, 40, 60)).shape == picture.shape  # cut at the edges
    of_input = on_input(picture, (2, 2, 4, 4), (8, 6))  # a rectangle of an input of 8 × 6
    assert (of_input == shown).all()


def test_a_rectangle_of_the_input_lands_where_it_lies_on_the_image() -> None:
    image = InputImage(np.zeros((100, 200, 3), np.uint8), "wide.png", "")
    crop = Crop(left=50, top=0, right=150, bottom=100, height=10, width=10)
    assert on_picture((0, 0, 10, 10), crop, image, (50, 100)) == (0, 25, 50, 75)
    assert on_picture((5, 5, 6, 7), crop, image, (100, 200)) == (50, 100, 60, 120)
