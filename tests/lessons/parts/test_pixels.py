from collections.abc import Callable

import pytest
from PIL import Image

from hookviz.images.samples import samples
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.pixels import PART


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


def test_what_the_network_gets_is_the_pixel_shifted_and_scaled(
    scene: LessonScene, options_of: Callable[..., Options]
) -> None:
    facts = PART.facts(scene, options_of("pixels"))
    steps = scene.model.preprocess
    for place, colour in enumerate(("red", "green", "blue")):
        value = (int(facts[colour]) / 255 - steps.mean[place]) / steps.std[place]  # type: ignore[union-attr]
        assert facts[f"{colour}_input"] == pytest.approx(value, abs=0.01)
