import pytest

import hookviz
from hookviz.explorer.subject import Subject
from hookviz.types import Model
from tests.explorer.asking import subject_of


@pytest.fixture(scope="package")
def model() -> Model:
    return hookviz.load_model("shapesnet")


@pytest.fixture
def subject(model: Model) -> Subject:
    """A star in ShapesNet, of which nothing is kept yet."""
    return subject_of(model)
