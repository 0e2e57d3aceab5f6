"""The text of a step tells of what its live part shows, whatever its controls stand at."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.lessons.test_lesson_page import answered


def ran(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def html(page: AppTest) -> list[str]:
    """What is written on the page as HTML, piece by piece."""
    pieces: Any = page.get("html")
    return [piece.value for piece in pieces]


def words(page: AppTest) -> str:
    """What the paragraphs say."""
    told = (each for each in html(page) if "hv-lesson-text" in each)
    return " ".join(re.sub("<[^>]+>", "", each) for each in told)


def control(page: AppTest, end: str) -> Any:
    """The control of a live part whose key ends so."""
    kinds = [page.slider, page.select_slider, page.segmented_control, page.selectbox]
    return next(one for kind in kinds for one in kind if str(one.key).endswith(end))


def move(page: AppTest, end: str, value: Any) -> AppTest:
    control(page, end).set_value(value)
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


SCRIPTS: list[tuple[str, int, str, Any, Callable[[str], str]]] = [
    (
        "a-hooks-life",
        2,
        " CLONE",
        True,
        lambda printed: f"lowest value is −{found(printed, 'put')}",
    ),
    ("a-hooks-life", 5, " PASSES", 2, lambda printed: f": {found(printed, 'hooks left')}"),
]


def found(printed: str, line: str) -> str:
    """The number without a sign that a line of what was printed ends with."""
    numbers = re.search(rf"{line}[^\n]*?[-+:] ?(\d[\d.]*)\n?", printed)
    assert numbers
    return numbers[1]


@pytest.mark.parametrize(("lesson", "step", "end", "value", "tells"), SCRIPTS)
def test_what_a_script_prints(
    lesson: str, step: int, end: str, value: Any, tells: Callable[[str], str]
) -> None:
    page = answered(lesson, step)
    before = words(page)
    page = move(page, end, value)
    printed = "\n".join(each.value for each in page.code)
    assert tells(printed) in words(page).replace("\n", " ")
    assert words(page) != before
