"""Questions and answers as they are; which channel and cell a question is about, or why none."""

from typing import Any

import pytest

from hookviz.explorer.question import (
    NotThereError,
    asked_cell,
    asked_number,
    written,
)
from tests.explorer.asking import NO_NUMBERS


@pytest.mark.parametrize("given", [*NO_NUMBERS, 6, "x" * 10_000])
@pytest.mark.parametrize("axis", ["channel", "row", "column"])
def test_what_is_not_there_is_refused_in_a_sentence_with_what_is(axis: str, given: Any) -> None:
    with pytest.raises(NotThereError, match=rf"conv1 has no {axis} .*: its {axis}s are 0 to 5\."):
        asked_number({axis: given}, axis, 6, "conv1")
    assert len(written(given)) <= 40
    with pytest.raises(NotThereError, match="no column 4: its columns are 0 to 3"):
        asked_cell({"row": 1, "column": 4}, (6, 4), "conv1")
