import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.lessons.test_lesson_page import answered
from tests.ui.pages import ran


def words(page: AppTest) -> str:
    pieces: Any = page.get("html")
    texts = (piece.value for piece in pieces if "hv-lesson-text" in piece.value)
    return " ".join(re.sub("<[^>]+>", "", each) for each in texts)


@pytest.mark.parametrize(
    ("lesson", "step", "moved", "line", "says"),
    [
        ("a-hooks-life", 2, (" CLONE", True), "put", "lowest value is −{}"),
        ("a-hooks-life", 5, (" PASSES", 2), "hooks left", ": {}"),
    ],
)
def test_the_text_has_the_numbers_that_a_script_prints(
    lesson: str, step: int, moved: tuple[str, Any], line: str, says: str
) -> None:
    page = answered(lesson, step)
    before = words(page)
    kinds = [page.slider, page.select_slider, page.segmented_control, page.selectbox]
    control: Any = next(one for kind in kinds for one in kind if str(one.key).endswith(moved[0]))
    control.set_value(moved[1])
    ran(page)
    printed = "\n".join(each.value for each in page.code)
    number = re.search(rf"{line}[^\n]*?[-+:] ?(\d[\d.]*)\n?", printed)
    assert number
    assert says.format(number[1]) in words(page).replace("\n", " ") != before
