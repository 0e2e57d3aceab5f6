"""Every control of every lesson is moved, and the text of its step tells of what is shown then.

What the text has to say is computed anew, of the options that the moved controls stand for, and
the numbers in it are held to those that the parts themselves show.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.lessons import prose, small_network
from hookviz.lessons.layers import layer_of, maps_of, strongest_first
from hookviz.lessons.lesson import Lesson, Live, Text
from hookviz.lessons.part import Fact, LessonScene, Options
from hookviz.ui.lessons.catalog import lessons, parts
from hookviz.ui.lessons.picks import MOVED
from tests.lessons.conftest import scene_of
from tests.ui.lessons.lesson_controls import IN_LINK, changed
from tests.ui.lessons.panel_numbers import SHOWN, TEXT, Panel, without_marks
from tests.ui.pages import opened, ran, texts

MODELS = {
    "ShapesNet": "shapesnet",
    "SqueezeNet (photographs)": "squeezenet",
    "ShapesViT (drawings)": "shapesvit",
}
_ROOM = 300_000_000  # bytes of what is computed beside the page
STEPS = [
    pytest.param(lesson, number, id=f"{lesson.slug} {number}")
    for lesson in lessons()
    for number, step in enumerate(lesson.steps, 1)
    if any(isinstance(block, Live) for block in step.blocks)
]


@pytest.fixture(autouse=True)
def nobody_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training is one for all of a process, and another test may have taken it to its end."""
    monkeypatch.setattr(small_network, "_kept", OrderedDict())


@cache
def scene_for(model: str, sample: str) -> LessonScene:
    scene = scene_of(hookviz.load_model(MODELS[model]), sample)
    return replace(scene, cache=Budget(_ROOM).cache(_ROOM))


@cache
def facts_for(part: str, options: str, model: str, sample: str) -> Mapping[str, Fact]:
    return parts()[part].facts(scene_for(model, sample), json.loads(options))


class OpenStep:
    """A step on a page without a browser, all of whose questions have an answer."""

    def __init__(self, lesson: Lesson, number: int) -> None:
        self.lesson, self.step = lesson, lesson.steps[number - 1]
        self.stem = f"{lesson.slug}-{number}-"
        self.page = opened(lesson, lesson=lesson.slug, step=str(number))
        assert not self.page.error, texts(self.page.error)
        self.model = str(self.page.selectbox(key="model").value)
        self.sample = lesson.defaults.get("sample", "cat")

    def run(self) -> None:
        ran(self.page)
        assert not self.page.error, texts(self.page.error)

    @property
    def scene(self) -> LessonScene:
        return scene_for(self.model, self.sample)

    def live(self) -> Iterator[tuple[str, Live]]:
        for position, block in enumerate(self.step.blocks):
            if isinstance(block, Live):
                yield f"{self.stem}{position}", block

    def named(self) -> set[str]:
        words = " ".join(each.words for each in self.step.blocks if isinstance(each, Text))
        return set(re.findall(r"\{(\w+)", words))

    def moves(self) -> dict[str, str]:
        if MOVED not in self.page.query_params:
            return {}
        text = self.page.query_params[MOVED]
        return dict(parse_qsl(text if isinstance(text, str) else text[-1]))

    def options(self, key: str, live: Live) -> Options:
        """The options that the controls of a part stand for, by the link alone."""
        options: Options = live.options
        for moved, kept in self.moves().items():
            of_part, _, name = moved.partition(" ")
            if of_part == key:
                options = changed(live.part.name, name, kept, options)
        return options

    def facts(self) -> dict[str, Fact]:
        found: dict[str, Fact] = {"above": "red", "below": "blue"}
        for key, live in self.live():
            options = json.dumps(dict(self.options(key, live)), sort_keys=True)
            found |= facts_for(live.part.name, options, self.model, self.sample)
        return found

    def hold(self, moved: str) -> None:
        """Compare the text with what it should tell, and its numbers with those of the parts."""
        facts = self.facts()
        pieces: Any = self.page.get("html")
        shown = [each.value for each in pieces if each.value.startswith(TEXT)]
        told = [
            prose.as_html(block.words, facts, self.lesson.file, block.line)
            for block in self.step.blocks
            if isinstance(block, Text)
        ]
        assert len(shown) == len(told)
        for on_page, wanted in zip(shown, told, strict=True):
            assert without_marks(on_page).split() == without_marks(wanted).split(), (
                f"{moved}: {self.moves()}"
            )
        for key, live in self.live():
            panel = Panel(self.page, key, self.options(key, live))
            numbers = SHOWN[live.part.name](panel) if live.part.name in SHOWN else {}
            for name in sorted(numbers.keys() & self.named()):
                number = numbers[name]
                assert panel.agree(facts[name], number), (
                    f"{moved}: {name} is {facts[name]!r} in the text, and {number} is shown"
                )

    def widgets(self) -> dict[str, Any]:
        page = self.page
        kinds: tuple[Any, ...] = (
            page.button_group,
            page.selectbox,
            page.select_slider,
            page.slider,
        )
        kinds = (*kinds, page.text_input, page.button)
        found = {str(one.key): one for kind in kinds for one in kind if one.key}
        return {key: one for key, one in found.items() if key.startswith(self.stem)}

    def values(self, widget: Any) -> Sequence[Any]:
        """What a widget is moved to: its ends."""
        if widget.type == "button":
            return [] if widget.disabled else [True]
        if widget.type == "text_input":
            return ["a word"]
        if widget.type == "slider":
            return [int(widget.min), int(widget.max)]
        return [each for each in widget.options[::-1][:2] if each != _written(widget)]

    def move_widgets(self) -> None:
        done: set[str] = set()
        while left := [key for key in self.widgets() if key not in done]:
            key = left[0]
            done.add(key)
            for value in self.values(self.widgets()[key]):
                widget = self.widgets().get(key)
                if widget is None or getattr(widget, "disabled", False):
                    break
                if widget.type == "button":
                    widget.click()
                elif widget.type in ("slider", "text_input"):
                    widget.set_value(value)
                else:
                    widget.set_value(_raw(widget, value))
                self.run()
                if widget.type not in ("button", "text_input"):
                    assert key in self.moves() or " name " in key
                self.hold(f"{key} to {value}")

    def move_in_link(self) -> None:
        for key, live in self.live():
            for part, name in IN_LINK:
                if part != live.part.name or (name == "hunt") != ("hunt" in self._offers(live)):
                    continue
                for kept in IN_LINK[part, name]:
                    text = self._filled(kept, live)
                    self.page.query_params[MOVED] = urlencode(
                        {**self.moves(), f"{key} {name}": text}
                    )
                    self.run()
                    self.hold(f"{key} {name} to {text}")

    def _second(self) -> int:
        layer = layer_of(self.scene, "first").name
        return strongest_first(maps_of(self.scene, layer), 2)[1]

    def _offers(self, live: Live) -> set[str]:
        return {"hunt"} if live.options.get("hunt") == "yes" else set()

    def _filled(self, kept: str, live: Live) -> str:
        """A move with what it names of the scene: layers, the sample."""
        trace = self.scene.trace
        names = {
            "{digest}": self.scene.model_input.digest[:8],
            "{layer}": layer_of(self.scene, "first").name,  # where the lesson hunts
            "{first}": trace.convs[0].name if trace.convs else "",
            "{last}": trace.convs[-1].name if trace.convs else "",
            "{sample}": self.sample,
            "{channel}": str(self._second()),
        }
        for name, text in names.items():
            kept = kept.replace(name, text)
        return kept


def _written(widget: Any) -> str:
    if widget.type == "button_group":
        return next(iter(widget.formatted_values), "")
    return str(widget.format_func(widget.value))


def _raw(widget: Any, option: str) -> Any:
    """The option behind what a widget shows: one that can be written again is not written yet."""
    try:
        again = str(widget.format_func(option))
    except (KeyError, TypeError, IndexError, ValueError):
        return option
    return option.removeprefix(again[: len(again) - len(option)])


@pytest.mark.parametrize(("lesson", "number"), STEPS)
def test_the_text_follows_each_control(lesson: Lesson, number: int) -> None:
    step = OpenStep(lesson, number)
    step.hold("at first")
    step.move_in_link()
    step.move_widgets()
