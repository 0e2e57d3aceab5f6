import numpy as np
import torch

import hookviz
from hookviz.capturing import engine
from hookviz.drawing import heat
from hookviz.images import reading
from tests.conftest import Tiny, as_model, picture, random_input, seeded


def test_a_resized_map_is_linear_between_the_middles_of_its_cells() -> None:
    found = heat.resized(np.array([[0.0, 4.0], [8.0, 12.0]]), 4, 8)
    across = [0.0, 0.0, 0.5, 1.5, 2.5, 3.5, 4.0, 4.0]
    down = [0.0, 2.0, 6.0, 8.0]
    np.testing.assert_allclose(found, np.add.outer(down, across))


def test_over_the_input_covers_all_of_it_whatever_its_shape() -> None:
    model = as_model(seeded(Tiny))
    made = hookviz.prepare(model, picture(width=60, height=30), whole=True)
    red = np.array([[(255, 0, 0), (0, 0, 255)]], np.uint8)
    shown = heat.over_input(made, red, opacity=1)
    assert shown.shape == (320, 640, 3)
    assert (shown[:, :320] == (255, 0, 0)).all()
    assert (shown[:, 320:] == (0, 0, 255)).all()


def test_over_the_image_covers_the_crop_alone() -> None:
    image = reading.read(picture(width=64, height=32))
    model = as_model(seeded(Tiny))  # resizes to 16×32 and takes the 16×16 in the middle
    made = engine.prepare(model, image)
    red = np.array([[(255, 0, 0)]], np.uint8)
    shown = heat.over_image(made, image, red, opacity=1)
    covered = (shown == (255, 0, 0)).all(2)
    assert shown.shape == (320, 640, 3)
    assert covered[:, 160:480].all()
    assert not covered[:, :160].any()
    assert not covered[:, 480:].any()


def test_a_tensor_is_drawn_in_grey() -> None:
    given = random_input(0)
    given[0, :, 3, 5] = 9
    given[0, :, 7, 2] = -9
    made = hookviz.prepare(as_model(seeded(Tiny)), given)
    shown = heat.over_image(made, None, np.zeros((1, 1, 3), np.uint8), opacity=0)
    assert shown.shape == (640, 640, 3)
    assert (shown[..., 0] == shown[..., 1]).all()
    assert (shown[140, 220] >= 250).all()
    assert (shown[300, 100] <= 5).all()
    flat = hookviz.prepare(as_model(seeded(Tiny)), torch.zeros(1, 3, 16, 16))
    assert (heat.over_input(flat, np.zeros((1, 1, 3), np.uint8), opacity=0) == 0).all()


def test_the_end_colour_stands_for_a_percentile_of_what_is_finite() -> None:
    values = np.arange(-100.0, 1.0).reshape(1, -1)
    assert heat.end_of(values) == 100
    assert heat.end_of(values, 99) == 99
    assert heat.end_of(np.array([[np.nan, np.inf, -3.0]])) == 3
    assert heat.end_of(np.eye(20), 50) == 1  # most are 0
    assert heat.end_of(np.zeros((2, 2))) == 1
    assert heat.end_of(np.full((2, 2), np.nan)) == 1
