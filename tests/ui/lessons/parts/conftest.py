from collections.abc import Callable

import pytest

from hookviz.lessons.part import Options
from hookviz.ui.lessons.catalog import parts
from tests.lessons.conftest import scene

__all__ = ["options_of", "scene"]


@pytest.fixture(scope="session")
def options_of() -> Callable[..., Options]:
    """The options of a part, with its defaults for those that are not given."""

    def options(part: str, **given: str) -> Options:
        declared = {option.name: option.default or "" for option in parts()[part].options}
        return declared | given

    return options
