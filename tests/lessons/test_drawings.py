"""The drawn data: repeatable, varied, and apart for training and testing."""

from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from hookviz.lessons.drawings import HARD_SEEDS, SAMPLE_SEEDS, TEST_SEEDS, TRAIN_SEEDS, draw
from hookviz.models.shapesnet import CATEGORIES, INPUT_SIZE, SHAPES, TEXTURES


def test_there_are_enough_classes_and_each_name_is_one_of_a_kind() -> None:
    assert len(CATEGORIES) >= 16
    assert len(set(CATEGORIES)) == len(CATEGORIES) == len(SHAPES) + len(TEXTURES)


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("degradation", [0.0, 1.0])
def test_a_seed_always_draws_the_same_picture(category: str, degradation: float) -> None:
    first = draw(category, 7, degradation=degradation)
    draw("circle", 8)  # what is drawn in between makes no difference
    assert draw(category, 7, degradation=degradation).tobytes() == first.tobytes()


@pytest.mark.parametrize("category", CATEGORIES)
def test_other_seeds_draw_other_pictures(category: str) -> None:
    assert len({draw(category, seed).tobytes() for seed in range(12)}) == 12


def test_one_seed_draws_another_picture_for_each_category() -> None:
    assert len({draw(category, 3).tobytes() for category in CATEGORIES}) == len(CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("size", [32, 33, 96, 256])
def test_every_category_is_drawn_at_every_size(category: str, size: int) -> None:
    picture = draw(category, 5, size)
    assert (picture.size, picture.mode) == ((size, size), "RGB")
    assert np.asarray(picture).std() > 2  # something is on it


def test_a_size_shows_the_same_scene() -> None:
    large = draw("star", 4, 2 * INPUT_SIZE).resize((32, 32), Image.Resampling.BOX)
    small = draw("star", 4, INPUT_SIZE).resize((32, 32), Image.Resampling.BOX)
    assert np.abs(np.asarray(large, float) - np.asarray(small, float)).mean() < 4


def test_degradation_changes_the_picture_and_adds_noise() -> None:
    plain, degraded = (
        np.asarray(draw("circle", 11, degradation=degree), float) for degree in (0.0, 1.0)
    )
    steps = [np.abs(np.diff(pixels, axis=1)).mean() for pixels in (plain, degraded)]
    assert steps[1] > 2 * steps[0]


def test_colours_cover_the_whole_cube() -> None:
    pictures = [
        np.asarray(draw(category, seed, 32)) for category in CATEGORIES for seed in range(8)
    ]
    darkest, brightest = np.percentile(np.concatenate(pictures).reshape(-1, 3), [5, 95], axis=0)
    assert (darkest < 60).all()
    assert (brightest > 180).all()


def test_training_and_tests_share_no_seed() -> None:
    for first, second in combinations([TRAIN_SEEDS, TEST_SEEDS, HARD_SEEDS, SAMPLE_SEEDS], 2):
        assert first.stop <= second.start or second.stop <= first.start


def test_a_category_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        draw("hexagon", 1)
