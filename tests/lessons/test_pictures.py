"""The image in grey, and where a map and a frame lie on it."""

from dataclasses import replace

import numpy as np
import pytest

from hookviz.lessons.part import LessonScene
from hookviz.lessons.pictures import (
    brightened,
    grey_of,
    noisy,
    photograph,
    picture_of,
    shifted,
    turned,
)
from tests.ui.lessons.parts.scenes import cat


def test_grey_is_the_brightness_of_each_pixel(scene: LessonScene) -> None:
    picture = picture_of(scene)
    whole = grey_of(scene, 1000)
    assert whole.shape == picture.shape[:2]
    red, green, blue = picture[5, 9].astype(float)
    expected = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    np.testing.assert_allclose(whole[5, 9], expected, rtol=1e-5)
    small = grey_of(scene, 64)
    assert small.shape == (64, 64)
    np.testing.assert_allclose(small[0, 0], whole[:2, :2].mean(), atol=1 / 255)


def test_a_frame_and_a_map_lie_where_the_network_sees() -> None:
    scene = cat()  # whose image is wider than what the network is given of it
    plain = photograph(scene)
    side = scene.model_input.tensor.shape[-1]
    framed = photograph(scene, box=(0, 0, side, side))
    rows, columns = np.nonzero((plain != framed).any(2))
    crop, image = scene.model_input.crop, scene.image
    assert crop is not None
    across = plain.shape[1] / image.width
    assert abs(columns.min() - crop.left * across) <= 5
    assert abs(columns.max() - crop.right * across) <= 5
    down = plain.shape[0] / image.height
    assert abs(rows.min() - crop.top * down) <= 5
    assert abs(rows.max() - crop.bottom * down) <= 5
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    over = photograph(scene, red, opacity=1)
    assert crop is not None
    left = int(crop.left * plain.shape[1] / image.width)
    np.testing.assert_array_equal(over[:, : left - 1], plain[:, : left - 1])
    middle = over[:, plain.shape[1] // 2]
    covered = (middle == (255, 0, 0)).all(1).mean()
    assert abs(covered - (crop.bottom - crop.top) / image.height) < 0.02
    bare = replace(scene, model_input=replace(scene.model_input, crop=None))
    picture = photograph(bare, box=(0, 0, 112, 112))
    assert picture.shape[0] == picture.shape[1]
    assert (
        picture[: picture.shape[0] // 2 - 8, -8:]
        == photograph(bare)[: picture.shape[0] // 2 - 8, -8:]
    ).all()


RNG = np.random.default_rng(3)
PICTURE = RNG.integers(0, 256, (7, 9, 3), dtype=np.uint8)


@pytest.mark.parametrize(("right", "down"), [(0, 0), (2, 0), (-3, 1), (0, -4), (100, -100)])
def test_a_shift_moves_every_pixel_and_mirrors_at_the_edge(right: int, down: int) -> None:
    moved = shifted(PICTURE, right, down)
    rows, columns = PICTURE.shape[:2]
    down, right = (
        max(-most + 1, min(most - 1, by)) for by, most in ((down, rows), (right, columns))
    )
    for row in range(rows):
        for column in range(columns):
            source_row, source_column = abs(row - down), abs(column - right)
            source_row = min(source_row, 2 * (rows - 1) - source_row)
            source_column = min(source_column, 2 * (columns - 1) - source_column)
            assert (moved[row, column] == PICTURE[source_row, source_column]).all()


def test_a_turn_by_a_right_angle_is_exact_and_none_brings_black_in() -> None:
    square = PICTURE[:7, :7]
    assert np.array_equal(turned(square, 90), np.rot90(square, -1))
    assert np.array_equal(turned(square, 180), square[::-1, ::-1])
    assert np.array_equal(turned(square, 360), square)
    grey = np.full((32, 48, 3), 77, np.uint8)
    assert (turned(grey, 37) == 77).all()


def test_light_multiplies_and_noise_moves_every_number_alike() -> None:
    assert np.array_equal(brightened(PICTURE, 100), PICTURE)
    assert (brightened(PICTURE, 0) == 0).all()
    twice = brightened(PICTURE, 200)
    assert np.array_equal(twice, np.minimum(255, 2 * PICTURE.astype(int)))
    middle = np.full((40, 40, 3), 128, np.uint8)
    moved = noisy(middle, 5).astype(int) - 128
    assert set(np.unique(moved)) == {-5, 5}
    assert abs(moved.mean()) < 0.5
    assert np.array_equal(noisy(middle, 5), noisy(middle, 5))
    assert noisy(np.zeros((4, 4, 3), np.uint8), 5).min() == 0
