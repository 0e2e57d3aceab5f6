"""The numbers of a riddle are those that Pillow finds in the image."""

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from hookviz.images.samples import samples
from hookviz.lessons.part import LessonScene, Options
from hookviz.ui.lessons.parts.riddle import (
    COLOURS,
    FINER,
    GREY,
    GREYS,
    NUMBERS,
    PART,
    UNCOVERED,
    levels_at,
    offered,
    picture_at,
)


@pytest.mark.parametrize(("stage", "side"), [(NUMBERS, 16), (GREYS, 16), (FINER, 32)])
def test_its_numbers_are_the_mean_greys_of_squares(
    scene: LessonScene, stage: int, side: int
) -> None:
    picture = scene.model_input.picture
    assert picture is not None
    small = np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BOX), float)
    np.testing.assert_allclose(levels_at(scene, stage, 16), small @ (0.299, 0.587, 0.114), atol=1)


def test_no_pixel_is_shown_before_its_stage(scene: LessonScene) -> None:
    assert all(picture_at(scene, stage) is None for stage in (NUMBERS, GREYS, FINER))
    grey, whole = (picture_at(scene, stage) for stage in (GREY, COLOURS))
    assert grey is not None
    assert whole is not None
    assert scene.model_input.picture is not None
    assert np.array_equal(whole, scene.model_input.picture)
    assert np.ptp(grey, axis=2).max() == 0
    np.testing.assert_allclose(grey[..., 0], whole @ (0.299, 0.587, 0.114), atol=1)


def test_what_is_said_follows_the_stage(
    scene: LessonScene, options_of: Callable[..., Options]
) -> None:
    seen = [256, 256, 1024, 128 * 128, 3 * 128 * 128]
    for stage, count in enumerate(seen):
        facts = PART.facts(scene, {**options_of("riddle"), UNCOVERED: str(stage)})
        assert facts["seen"] == count
        assert f"{count:,}" in str(facts["told"])
    facts = PART.facts(scene, options_of("riddle"))
    assert (facts["rows"], facts["columns"], facts["given"]) == (16, 16, 256)


def test_every_sample_is_among_four_different_names() -> None:
    places = set()
    for sample in samples():
        names = offered(sample.name)
        assert len(set(names)) == 4
        assert sample in names
        places.add(names.index(sample))
    assert len(places) > 2  # where it stands tells nothing
