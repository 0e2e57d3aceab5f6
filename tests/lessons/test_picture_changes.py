"""Changes of a picture, each against a plain reckoning of it."""

import numpy as np
import pytest

from hookviz.lessons.picture_changes import brightened, noisy, shifted, turned

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


def test_a_turn_by_a_right_angle_is_exact_and_clockwise() -> None:
    square = PICTURE[:7, :7]
    assert np.array_equal(turned(square, 90), np.rot90(square, -1))
    assert np.array_equal(turned(square, 180), square[::-1, ::-1])
    assert np.array_equal(turned(square, 360), square)


def test_a_turn_brings_no_black_in() -> None:
    grey = np.full((32, 48, 3), 77, np.uint8)
    assert (turned(grey, 37) == 77).all()


def test_light_multiplies_and_ends_at_white() -> None:
    assert np.array_equal(brightened(PICTURE, 100), PICTURE)
    assert (brightened(PICTURE, 0) == 0).all()
    twice = brightened(PICTURE, 200)
    assert np.array_equal(twice, np.minimum(255, 2 * PICTURE.astype(int)))


def test_noise_moves_every_number_by_the_same_size_each_time_alike() -> None:
    middle = np.full((40, 40, 3), 128, np.uint8)
    moved = noisy(middle, 5).astype(int) - 128
    assert set(np.unique(moved)) == {-5, 5}
    assert abs(moved.mean()) < 0.5
    assert np.array_equal(noisy(middle, 5), noisy(middle, 5))
    assert noisy(np.zeros((4, 4, 3), np.uint8), 5).min() == 0
