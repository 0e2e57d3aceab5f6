from collections.abc import Callable

import pytest
from PIL import Image

from hookviz.images.samples import samples
from hookviz.lessons.part import LessonScene, Options
from hookviz.ui.lessons.parts.pixels import AT, PART


def test_the_numbers_are_those_of_the_file(
    scene: LessonScene, options_of: Callable[..., Options]
) -> None:
    """Pillow alone: scaled to 146 on the shorter side and cut to 128, as ShapesNet wants it."""
    facts = PART.facts(scene, options_of("pixels", across="10", down="30"))
    picture = scene.model_input.picture
    assert picture is not None
    assert (facts["row"], facts["column"]) == (38, 12)
    assert (facts["red"], facts["green"], facts["blue"]) == tuple(picture[38, 12])
    assert facts["numbers"] == 3 * 128 * 128
    with Image.open(samples()[0].path) as image:
        assert (facts["image_width"], facts["image_height"]) == image.size


@pytest.mark.parametrize(("at", "row", "column"), [("5,9", 5, 9), ("500,0", 127, 0)])
def test_the_facts_are_those_of_the_pixel_that_is_picked(
    scene: LessonScene, options_of: Callable[..., Options], at: str, row: int, column: int
) -> None:
    facts = PART.facts(scene, {**options_of("pixels"), AT: at})
    assert scene.model_input.picture is not None
    assert (facts["row"], facts["column"]) == (row, column)
    picked = scene.model_input.picture[row, column]
    assert (facts["red"], facts["green"], facts["blue"]) == tuple(picked)
    inputs = scene.model_input.tensor[0, :, row, column].tolist()
    assert [facts[f"{colour}_input"] for colour in ("red", "green", "blue")] == inputs
