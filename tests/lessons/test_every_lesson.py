"""What holds for every lesson that ships: its length, its figures, its facts on other models."""

import re

import numpy as np
import pytest

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons import prose
from hookviz.lessons.catalog import lessons, words_of
from hookviz.lessons.layers import layer_of
from hookviz.lessons.lesson import Lesson, Live, Question
from hookviz.lessons.part import Fact, LessonScene, parts
from hookviz.lessons.picture_changes import shifted
from hookviz.lessons.sheet import sheet
from tests.lessons.conftest import scene_of

MOST_WORDS = 550  # with the words that explain a gradient and a correlation
NAMES = ("SqueezeNet 1.1", "top-1", "top-5", "1×1", "3×3")
"""Digits that a text may have, since they are no figures."""
EVERY = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.slug)


def without_code(lesson: Lesson) -> list[str]:
    return [words for words, _ in words_of(lesson)]


@EVERY
def test_it_is_short(lesson: Lesson) -> None:
    words = " ".join(without_code(lesson))
    assert (
        len(re.findall(r"[^\W\d_]{1,}(?:['’-]\w+)*", re.sub(r"\{[^}]*\}", "", words))) <= MOST_WORDS
    )
    assert 5 <= lesson.minutes <= 10


@EVERY
def test_no_figure_is_typed(lesson: Lesson) -> None:
    for words in without_code(lesson):
        text = re.sub(r"\{[^}]*\}|`[^`]*`|https?://\S+", "", words)
        for name in NAMES:
            text = text.replace(name, "")
        assert re.findall(r"\d+(?!\.\s)", re.sub(r"^\d+\.", "", text, flags=re.MULTILINE)) == [], (
            words
        )


@EVERY
def test_it_asks_and_says_why_in_every_answer(lesson: Lesson) -> None:
    questions = [b for step in lesson.steps for b in step.blocks if isinstance(b, Question)]
    assert questions
    for question in questions:
        assert any(not answer.right for answer in question.answers)
    assert any(isinstance(block, Live) for step in lesson.steps for block in step.blocks)
    assert lesson.summary


def text_of(slug: str, step: int) -> str:
    lesson = next(each for each in lessons() if each.slug == slug)
    return " ".join(
        words for words, _ in words_of(Lesson("", "", "", 5, (lesson.steps[step - 1],)))
    )


def test_what_lies_between_two_layers_is_said_where_they_are_compared() -> None:
    """A cell behind a ReLU and a pooling is no plain sum over cells of the conv layer before."""
    lesson = next(each for each in lessons() if each.slug == "depth")
    scene = scene_of(hookviz.load_model("squeezenet"), "cat")
    assert lesson.defaults["model"].startswith("SqueezeNet")
    first, second = (layer_of(scene, place).name for place in ("first", "second"))
    order = [layer.name for layer in scene.trace.layers]
    between = scene.trace.layers[order.index(first) + 1 : order.index(second)]
    assert {layer.kind for layer in between} == {"ReLU", "MaxPool2d"}
    assert "ReLU, and often pooling or a norm" in " ".join(text_of("depth", 2).split())


def test_what_fills_an_edge_that_becomes_empty_is_said_where_pictures_are_moved() -> None:
    picture = np.arange(36, dtype=np.uint8).reshape(6, 6, 1).repeat(3, 2)
    assert np.array_equal(shifted(picture, 2, 0)[:, :2], picture[:, 2:0:-1])  # and no black border
    for step in (1, 2):
        assert "mirrored" in text_of("what-if", step)


@pytest.fixture(scope="module", params=["shapesnet cat", "squeezenet cat", "shapesnet star"])
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
                part = parts()[block.part]
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
