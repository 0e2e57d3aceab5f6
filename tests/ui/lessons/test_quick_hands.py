"""What a quick hand does before its last click is drawn counts from what it has done so far."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import streamlit as st

from hookviz.ui.lessons.catalog import lessons
from hookviz.ui.lessons.parts import kernel, what_if
from tests.ui.lessons.test_texts_follow import OpenStep

Given = tuple[Any, ...]


def done_at_once(
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[str, int],
    component: tuple[ModuleType, str],
    *acts: Callable[[Given], object],
) -> dict[str, str]:
    """Do all that before another run of the page, and return what the link has of the part then.

    A button stands for the component, and each act gets what that was drawn with.
    """

    def draw(*given: Any, key: str, **_looks: Any) -> None:
        def do_all() -> None:
            for act in acts:
                act(given)

        st.button("quick", key=f"quick {key}", on_click=do_all)

    monkeypatch.setattr(*component, draw)
    lesson = next(each for each in lessons() if each.slug == step[0])
    opened = OpenStep(lesson, step[1])
    next(each for each in opened.page.button if each.label == "quick").click()
    opened.run()
    return {name.split(" ")[1]: text for name, text in opened.moves().items()}


def test_two_channels_are_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def flip(channel: int) -> Callable[[Given], object]:
        return lambda given: given[2](channel, None)

    moved = done_at_once(
        monkeypatch, ("what-if", 3), (what_if, "mosaic"), flip(4), flip(1), flip(7), flip(1)
    )
    assert moved["flipped"] == "4,7"


def test_the_effect_is_that_of_the_weight_that_was_changed_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kernel_with(weights: dict[int, float]) -> Callable[[Given], object]:
        def act(given: Given) -> None:
            first = [*given[0].kernel[0]]
            for column, weight in weights.items():
                first[column] = weight
            edited = (tuple(first), *given[0].kernel[1:])
            given[4](replace(given[0], kernel=edited, preset=""))

        return act

    moved = done_at_once(
        monkeypatch,
        ("convolution", 3),
        (kernel, "edit_kernel"),
        kernel_with({0: 2.5}),
        kernel_with({0: 2.5, 1: 7.0}),
    )
    assert moved["was"] == "0 1 -1"
