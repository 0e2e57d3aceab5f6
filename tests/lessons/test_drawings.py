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
    for one, other in combinations([TRAIN_SEEDS, TEST_SEEDS, HARD_SEEDS, SAMPLE_SEEDS], 2):
        assert one.stop <= other.start or other.stop <= one.start


def test_every_category_is_drawn_at_every_size() -> None:
    for category in CATEGORIES:
        for size in (33, 96):
            picture = draw(category, 5, size)
            assert (picture.size, picture.mode) == ((size, size), "RGB")
            assert np.asarray(picture).std() > 2  # something is on it
    with pytest.raises(ValueError, match="not in tuple"):
        draw("hexagon", 1)


def test_a_size_shows_the_same_scene_and_degradation_adds_noise() -> None:
    large = draw("star", 4, 2 * INPUT_SIZE).resize((32, 32), Image.Resampling.BOX)
    small = draw("star", 4, INPUT_SIZE).resize((32, 32), Image.Resampling.BOX)
    assert np.abs(np.asarray(large, float) - np.asarray(small, float)).mean() < 4
    plain, degraded = (
        np.asarray(draw("circle", 11, degradation=degree), float) for degree in (0.0, 1.0)
    )
    steps = [np.abs(np.diff(pixels, axis=1)).mean() for pixels in (plain, degraded)]
    assert steps[1] > 2 * steps[0]
