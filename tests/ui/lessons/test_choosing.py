from collections.abc import Mapping
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.lessons.lesson import Lesson
from hookviz.ui.lessons.catalog import lessons
from hookviz.ui.lessons.choosing import open_in_explorer
from tests.ui.pages import link_of, opened

NETWORK = {"family", "model", "weights", "size", "whole", "silenced"}


LEADING = {"image", "channels", "what-if", "from-maps-to-a-class"}
"""Lessons whose parts lead to a grid, to a channel, to silenced channels and to a lens."""


def choices(page: AppTest) -> dict[str, object]:
    """What the widgets stand at that a link can set."""
    kinds = ("selectbox", "number_input", "slider", "toggle", "text_input", "segmented_control")
    every: list[Any] = [widget for kind in kinds for widget in page.get(kind)]
    return {
        widget.key: widget.value
        for widget in every
        if widget.key and not widget.key.startswith(("_", "hv-"))
    }


@pytest.mark.parametrize(
    "lesson", [each for each in lessons() if each.slug in LEADING], ids=lambda lesson: lesson.slug
)
def test_what_a_live_part_shows_opens_in_the_explorer_as_its_link_does(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, str] = {}

    def noted(link: Mapping[str, str]) -> None:
        asked.clear()
        asked.update(link)
        open_in_explorer(link)

    monkeypatch.setattr("hookviz.ui.lessons.live_part.open_in_explorer", noted)
    for number in range(1, len(lesson.steps) + 1):
        page = opened(lesson, lesson=lesson.slug, step=str(number), model="ShapesNet")
        before = dict(page.query_params)
        for key in [
            key for key in (str(button.key) for button in page.button) if key.startswith("open ")
        ]:
            page.button(key=key).click().run()
            assert not page.exception, (lesson.slug, number)
            assert "lesson" not in page.query_params
            outside: dict[str, str] = {
                name: before[name] for name in ("model", "sample") if name in before
            }
            by_link = opened(**{**outside, **asked})
            assert choices(page) == choices(by_link), (lesson.slug, number, asked)
            assert link_of(page) == link_of(by_link)
            page.button(key="hv-to-lesson").click().run()
            assert not page.exception
            assert page.query_params["lesson"] == lesson.slug
            kept = {name: value for name, value in page.query_params.items() if name in NETWORK}
            assert kept == {name: value for name, value in before.items() if name in NETWORK}
