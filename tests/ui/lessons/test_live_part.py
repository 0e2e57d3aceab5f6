import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.lessons.test_lesson_page import answered
from tests.ui.pages import ran


def html(page: AppTest) -> list[str]:
    pieces: Any = page.get("html")
    return [piece.value for piece in pieces]


def words(page: AppTest) -> str:
    told = (each for each in html(page) if "hv-lesson-text" in each)
    return " ".join(re.sub("<[^>]+>", "", each) for each in told)


def move(page: AppTest, end: str, value: Any) -> AppTest:
    """Move the control of a live part whose key ends so."""
    kinds = [page.slider, page.select_slider, page.segmented_control, page.selectbox]
    control: Any = next(one for kind in kinds for one in kind if str(one.key).endswith(end))
    control.set_value(value)
    return ran(page)


def of_class(page: AppTest, label: str) -> str:
    """The probability of a class in the list of what the network says after the change."""
    after = "".join(html(page)).split('aria-label="After"', 1)[1]
    found = re.search(rf">{re.escape(label)}</span><span>([^<]+)<", after)
    assert found
    return found[1]


def test_a_picture_that_is_changed_further() -> None:
    page = answered("what-if", 1)
    before = words(page)
    page = move(page, " amount", 40)
    assert "40 degrees" in words(page) != before
    label = re.search(
        r"this picture for ([^,]+(?:, [^,]+)*?), with|Here (.+) goes from", words(page)
    )
    assert label
    assert of_class(page, label[1] or label[2]) in words(page)


@pytest.mark.parametrize(
    ("lesson", "step", "moved", "line", "says"),
    [
        ("a-hooks-life", 2, (" CLONE", True), "put", "lowest value is −{}"),
        ("a-hooks-life", 5, (" PASSES", 2), "hooks left", ": {}"),
    ],
)
def test_what_a_script_prints(
    lesson: str, step: int, moved: tuple[str, Any], line: str, says: str
) -> None:
    page = answered(lesson, step)
    before = words(page)
    page = move(page, *moved)
    printed = "\n".join(each.value for each in page.code)
    number = re.search(rf"{line}[^\n]*?[-+:] ?(\d[\d.]*)\n?", printed)
    assert number
    assert says.format(number[1]) in words(page).replace("\n", " ") != before
