from collections.abc import Callable

import pytest

import hookviz
from hookviz.capturing import inputs
from hookviz.capturing.layer_trace import input_trace
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lessons.part import LessonScene, Options
from hookviz.ui.lessons.catalog import parts


def scene_of(model: hookviz.Model, sample: str = "cat") -> LessonScene:
    """A model and a sample image as a lesson's parts get them."""
    image = reading.read(next(each.path for each in samples() if each.name == sample))
    model_input = inputs.prepare(model, image)
    return LessonScene(model, model_input, image, input_trace(model, model_input))


@pytest.fixture(scope="session")
def scene() -> LessonScene:
    return scene_of(hookviz.load_model("shapesnet"))


@pytest.fixture(scope="session")
def options_of() -> Callable[..., Options]:
    """The options of a part, with its defaults for those that are not given."""

    def options(part: str, **given: str) -> Options:
        declared = {option.name: option.default or "" for option in parts()[part].options}
        return declared | given

    return options
