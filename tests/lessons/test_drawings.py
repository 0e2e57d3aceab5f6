"""The drawn data: repeatable, varied, and apart for training and testing."""

from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from hookviz.lessons.drawings import HARD_SEEDS, SAMPLE_SEEDS, TEST_SEEDS, TRAIN_SEEDS, draw
from hookviz.models.shapesnet import CATEGORIES, INPUT_SIZE


def test_a_seed_always_draws_the_same_picture_and_another_another() -> None:
    drawn = set()
    for category in CATEGORIES:
        first = {seed: draw(category, seed, 32, degradation=1.0).tobytes() for seed in range(12)}
        assert len({*first.values()}) == 12
        # what is drawn in between makes no difference
        assert draw(category, 7, 32, degradation=1.0).tobytes() == first[7]
        drawn.add(first[7])
    assert len(drawn) == len(CATEGORIES)


def test_every_category_is_drawn_at_every_size() -> None:
    for category in CATEGORIES:
        for size in (33, 96):
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
