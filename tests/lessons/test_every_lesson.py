"""What holds for every lesson that ships: its length, its figures, its facts on other models."""

import re

import pytest

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons import prose
from hookviz.lessons.lesson import Lesson, Live, Question
from hookviz.lessons.part import Fact, LessonScene
from hookviz.lessons.sheet import sheet
from hookviz.ui.lessons.catalog import lessons, words_of
from tests.lessons.conftest import scene_of

MOST_WORDS = 550  # with the words that explain a gradient and a correlation
NAMES = ("SqueezeNet 1.1", "256 numbers", "top-1", "top-5", "1×1", "3×3")
"""Digits that a text may have, since they are no figures."""
EVERY = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.slug)


def without_code(lesson: Lesson) -> list[str]:
    return [words for words, _ in words_of(lesson)]


@EVERY
def test_it_is_short_types_no_figure_and_asks(lesson: Lesson) -> None:
    words = " ".join(without_code(lesson))
    assert (
        len(re.findall(r"[^\W\d_]{1,}(?:['’-]\w+)*", re.sub(r"\{[^}]*\}", "", words))) <= MOST_WORDS
    )
    assert 5 <= lesson.minutes <= 10
    for words in without_code(lesson):
        text = re.sub(r"\{[^}]*\}|`[^`]*`|https?://\S+", "", words)
        for name in NAMES:
            text = text.replace(name, "")
        assert re.findall(r"\d+(?!\.\s)", re.sub(r"^\d+\.", "", text, flags=re.MULTILINE)) == [], (
            words
        )
    questions = [b for step in lesson.steps for b in step.blocks if isinstance(b, Question)]
    assert questions
    for question in questions:
        assert any(not answer.right for answer in question.answers)
    assert any(isinstance(block, Live) for step in lesson.steps for block in step.blocks)
    assert lesson.summary


@pytest.fixture(scope="module", params=["shapesnet cat", "squeezenet cat"])
def another(request: pytest.FixtureRequest) -> LessonScene:
    model, sample = request.param.split()
    return scene_of(hookviz.load_model(model), sample)


@EVERY
def test_every_fact_is_there_whatever_is_chosen(lesson: Lesson, another: LessonScene) -> None:
    facts = []
    for step in lesson.steps:
        found: dict[str, Fact] = {"above": "red", "below": "blue"}  # as the page has them
        for block in step.blocks:
            if isinstance(block, Live):
                part = block.part
                found |= part.facts(another, block.options)
                link = part.link(another, block.options)
                assert all(isinstance(value, str) for value in link.values())
        facts.append(found)
        for words, line in words_of(Lesson("", "", "", 5, (step,))):
            try:
                prose.as_html(words, found, lesson.file, line)
            except HookVizError as error:
                raise AssertionError(str(error)) from error
    assert sheet(lesson, facts, "this", answers=True).startswith(b"%PDF-")
