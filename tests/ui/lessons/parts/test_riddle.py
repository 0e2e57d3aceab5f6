import numpy as np
from PIL import Image

from hookviz.images.samples import samples
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
from tests.ui.lessons.parts.scenes import photograph, with_defaults


def test_no_pixel_is_shown_before_its_stage_and_numbers_are_mean_greys() -> None:
    grey, whole = (picture_at(photograph(), stage) for stage in (GREY, COLOURS))
    picture = photograph().model_input.picture
    assert grey is not None
    assert whole is not None
    assert picture is not None
    assert np.array_equal(whole, picture)
    assert np.ptp(grey, axis=2).max() == 0
    np.testing.assert_allclose(grey[..., 0], whole @ (0.299, 0.587, 0.114), atol=1)
    for stage, side in ((NUMBERS, 16), (GREYS, 16), (FINER, 32)):
        assert picture_at(photograph(), stage) is None
        small = Image.fromarray(picture).resize((side, side), Image.Resampling.BOX)
        right = np.asarray(small, float) @ (0.299, 0.587, 0.114)
        np.testing.assert_allclose(levels_at(photograph(), stage, 16), right, atol=1)


def test_what_is_said_follows_the_stage() -> None:
    for stage, count in enumerate((256, 256, 1024, 128 * 128, 3 * 128 * 128)):
        facts = PART.facts(photograph(), {**with_defaults(PART), UNCOVERED: str(stage)})
        assert facts["seen"] == count
        assert f"{count:,}" in str(facts["told"])
        assert (facts["rows"], facts["columns"], facts["given"]) == (16, 16, 256)


def test_every_sample_is_among_four_different_names() -> None:
    places = set()
    for sample in samples():
        names = offered(sample.name)
        assert len(set(names)) == 4
        assert sample in names
        places.add(names.index(sample))
    assert len(places) > 2  # where it stands tells nothing
