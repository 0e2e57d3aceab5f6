"""The text of a step tells of what its live part shows, whatever its controls stand at."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.lessons.catalog import lessons
from hookviz.lessons.lesson import Question
from hookviz.lessons.parts.attention import PATCH
from hookviz.ui.lessons.choosing import question_key
from tests.ui.test_page import SCRIPT, texts


def at_step(name: str, step: int) -> AppTest:
    """A step of a lesson, all of whose questions have an answer."""
    lesson = next(each for each in lessons() if each.slug == name)
    page = AppTest.from_file(str(SCRIPT), default_timeout=120)
    page.query_params["lesson"], page.query_params["step"] = name, str(step)
    for block in lesson.steps[step - 1].blocks:
        if isinstance(block, Question):
            page.session_state[question_key(lesson, block)] = 0
    return ran(page)


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


@pytest.mark.parametrize(("step", "amount", "tells"), [(1, 40, "{} degrees"), (2, 9, "{} pixels")])
def test_a_picture_that_is_changed_further(step: int, amount: int, tells: str) -> None:
    page = at_step("what-if", step)
    before = words(page)
    page = move(page, " amount", amount)
    assert tells.format(amount) in words(page) != before
    label = re.search(
        r"this picture for ([^,]+(?:, [^,]+)*?), with|Here (.+) goes from", words(page)
    )
    assert label
    assert of_class(page, label[1] or label[2]) in words(page)


def test_a_picture_that_is_made_another_class() -> None:
    page = at_step("what-if", 4)
    said = words(page).replace("\n", " ")
    assert f"to {of_class(page, 'toaster')}." in said
    page = move(page, " steps", 3)
    assert "asked 3 times" in words(page)
    page = move(page, " amount", 4)
    assert "further than 4 from" in words(page).replace("\n", " ")
    page = move(page, " target", "954")
    assert "banana" in words(page)
    assert f"to {of_class(page, 'banana')}." in words(page).replace("\n", " ")
    page = move(page, " target", "none")
    assert "anything but Egyptian cat" in words(page).replace("\n", " ")
    page = move(page, " maps", "features.0")
    assert "All of features.0 changed by" in texts(page.caption)


def test_channels_that_are_switched_off_and_a_question_that_was_asked() -> None:
    page = move(at_step("what-if", 3), " count", 2)
    assert "Without the 2 whose loss lowered" in words(page)
    label = re.search(
        "the fall of the score for (.+?) was measured", words(page).replace("\n", " ")
    )
    assert label
    assert f"{label[1]} has {of_class(page, label[1])}" in words(page).replace("\n", " ")


def test_pooling_in_larger_windows() -> None:
    page = move(at_step("relu-and-pooling", 5), " window", 5)
    captions = texts(page.caption)
    pooled = re.search(r"Pooled\W+(\d+)\W+(\d+)", captions)
    assert pooled
    said = words(page).replace("\n", " ")
    assert "windows of 5 × 5 cells" in said
    assert f"become {pooled[1]} × {pooled[2]}: one of 25 is left" in said


SCRIPTS: list[tuple[str, int, str, Any, Callable[[str], str]]] = [
    (
        "a-hooks-life",
        2,
        " CLONE",
        True,
        lambda printed: f"lowest value is −{found(printed, 'put')}",
    ),
    ("a-hooks-life", 5, " PASSES", 2, lambda printed: f": {found(printed, 'hooks left')}"),
    ("a-hooks-life", 6, " USE_FINALLY", True, lambda printed: f": {found(printed, 'hooks left')}"),
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
    page = at_step(lesson, step)
    before = words(page)
    page = move(page, end, value)
    printed = "\n".join(each.value for each in page.code)
    assert tells(printed) in words(page).replace("\n", " ")
    assert words(page) != before


def test_another_class() -> None:
    page = at_step("from-maps-to-a-class", 2)
    box = control(page, " class")
    assert "speak for star" in words(page)
    box.select_index(box.options.index("ring"))
    assert "speak for ring" in words(ran(page))


def test_another_layer_that_attends() -> None:
    page = move(at_step("from-patches-to-attention", 4), " place", "last")
    assert "What each head of blocks.3.attn weighs" in texts(page.caption)
    assert "In blocks.3.attn the largest weight" in words(page).replace("\n", " ")
    assert PATCH in words(page)
