import pytest

import hookviz
from hookviz.capturing import inputs
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lessons.part import LessonScene


def scene_of(model: hookviz.Model, sample: str = "cat") -> LessonScene:
    """A model and a sample image as a lesson's parts get them."""
    image = reading.read(next(each.path for each in samples() if each.name == sample))
    model_input = inputs.prepare_input(model, image)
    return LessonScene(model, model_input, image)


@pytest.fixture(scope="session")
def scene() -> LessonScene:
    return scene_of(hookviz.load_model("shapesnet"))
