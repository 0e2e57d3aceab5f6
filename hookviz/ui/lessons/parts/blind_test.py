"""Show maps one by one, to tell a trained network from one with random weights.

Network and image decide the maps, so that a reload and all screens of a class have the same ones.
The page shows one map with its two answers, and below it the maps and answers so far.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from math import comb
from pathlib import Path

import numpy as np
import streamlit as st

from hookviz.drawing.grid import Grid, make_grid
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.markup import data_url
from hookviz.types import Activation
from hookviz.ui.components.files import style
from hookviz.ui.lessons.parts.untrained import TrainedAndUntrained, trained_and_untrained
from hookviz.ui.lessons.picks import pick, picked, remember_options
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain
from hookviz.wording import percent

MAPS = 10
_LEAST_OF_EITHER = 3  # the numbers of both kinds can differ, so that nobody counts on them
_TRAINED, _UNTRAINED = "t", "u"
"""An answer in the link, a letter for each map."""
ANSWERS, ROUND = "answers", "round"
"""Options that the page adds: the answers, and the number of the test."""


@dataclass(frozen=True, slots=True)
class BlindMap:
    """A map of the test: a channel of either network."""

    is_trained: bool
    channel: int


@dataclass(frozen=True, eq=False, slots=True)
class BlindTest:
    """The maps of a test in their order, and their layer of both networks."""

    pair: TrainedAndUntrained
    maps: tuple[BlindMap, ...]

    def is_right(self, answers: str, at: int) -> bool:
        """Return whether the answer at a position is right."""
        return self.maps[at].is_trained == (answers[at] == _TRAINED)

    def right(self, answers: str) -> int:
        """Return the number of right answers."""
        return sum(self.is_right(answers, at) for at in range(len(answers)))


def blind_test(scene: LessonScene, options: Options, number: int = 1) -> BlindTest:
    """Return the test of a number, of channels that are not constant.

    Raises:
        ModelError: the weights are random already.
    """
    pair = trained_and_untrained(scene, {"layer": options["layer"]})
    draw = random.Random(f"{scene.model.digest} {scene.model_input.digest} {number}")  # noqa: S311
    trained, untrained = _varying(pair.trained), _varying(pair.untrained)
    count = min(MAPS, 2 * min(len(trained), len(untrained)))
    least = min(_LEAST_OF_EITHER, count // 2)
    of_trained = draw.randint(max(least, count - len(untrained)), min(count - least, len(trained)))
    maps = [BlindMap(True, channel) for channel in draw.sample(trained, of_trained)]
    maps += [BlindMap(False, channel) for channel in draw.sample(untrained, count - of_trained)]
    draw.shuffle(maps)
    return BlindTest(pair, tuple(maps))


def answers_of(text: str, count: int) -> str:
    """Return the valid answers at the start of a text from the link, at most `count`."""
    match = re.match(f"[{_TRAINED}{_UNTRAINED}]*", text)
    return match[0][:count] if match else ""


def by_chance(right: int, count: int) -> float:
    """Return the probability of `right` or more right answers of `count` by tossing a coin."""
    return float(sum(comb(count, hits) for hits in range(right, count + 1)) / 2**count)


def _standing(test: BlindTest, answers: str) -> str:
    """Return the number of answers in words, and at the end the score and its probability."""
    count, right = len(test.maps), test.right(answers)
    if len(answers) < count:
        return say("{answered} of {count} answered.", answered=len(answers), count=count)
    return say(
        "{right} of {count} right. A tossed coin has {right} or more in {share} of all tests.",
        right=right,
        count=count,
        share=percent(by_chance(right, count)),
    )


def _varying(maps: Activation) -> list[int]:
    rows = maps.values.flatten(1)
    return [int(at) for at in np.flatnonzero((rows.amax(1) > rows.amin(1)).numpy())]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    test = blind_test(scene, options, int(options.get(ROUND, "1")))
    answers = answers_of(options.get(ANSWERS, ""), len(test.maps))
    return {
        "layer": test.pair.layer.name,
        "count": len(test.maps),
        "answered": len(answers),
        "standing": _standing(test, answers),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, options["layer"]).name}


PART = Part(
    name="blind-test",
    sentence=mark(
        "Ten maps, one by one: of the trained network, or of the same with random weights? Each "
        "answer shows which it was, and the end how many were right."
    ),
    options=(Option("layer", "first", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)


_LARGE_PX, _SMALL_PX = 320, 96
_SHEET = Path(__file__).with_suffix(".css")


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the present map with its answers, or the score; and the row of all maps."""
    number = max(1, picked(key, ROUND, 1))
    with turn(say("The same network with random weights"), "lesson", model=scene.model.name):
        test = blind_test(scene, options, number)
    answers = answers_of(picked(key, ANSWERS, ""), len(test.maps))
    remember_options(key, {ANSWERS: answers, ROUND: str(number)}, {ANSWERS: "", ROUND: "1"})
    grids = {
        trained: make_grid(maps, scale="channel", colormap="gray")
        for trained, maps in ((True, test.pair.trained), (False, test.pair.untrained))
    }
    at, count = len(answers), len(test.maps)
    with st.container(key=f"hv-blind-{key}"):
        st.html(f"{style(_SHEET)}{_head_html(test, answers, grids)}")
        with st.container(horizontal=True, vertical_alignment="center"):
            for label, letter, shortcut in (
                (say("Trained"), _TRAINED, "T"),
                (say("Random weights"), _UNTRAINED, "U"),
            ):
                st.button(
                    label,
                    key=f"{key} {letter}",
                    shortcut=shortcut,
                    disabled=at == count,
                    on_click=partial(_answer, key, letter),
                )
            st.button(
                say("Ten others"),
                key=f"{key} others",
                icon=":material/refresh:",
                type="tertiary",
                disabled=at < count,
                on_click=partial(_begin, key, number + 1),
            )
        st.html(_row_html(test, answers, grids))
    st.caption(plain(say("Each map is drawn from its own lowest value, black, to its highest.")))


def _answer(key: str, letter: str) -> None:
    """Add an answer to the link's, which a quick click has changed before this run."""
    pick(key, ANSWERS, picked(key, ANSWERS, "") + letter)


def _begin(key: str, number: int) -> None:
    pick(key, ROUND, number)
    pick(key, ANSWERS, "")


def _head_html(test: BlindTest, answers: str, grids: dict[bool, Grid]) -> str:
    """Return the present map, large, or the score; with the verdict on the last answer."""
    at, count = len(answers), len(test.maps)
    verdict = _verdict(test, answers, at - 1) if at else ""
    status = f'<p class="hv-blind-said" role="status">{escape(verdict)}</p>'
    if at == count:
        score = f"{test.right(answers)} / {count}"
        text = escape(_standing(test, answers))
        return f'<div class="hv-blind-score"><b>{score}</b><p>{text}</p></div>{status}'
    each = test.maps[at]
    url = _url(grids[each.is_trained], each.channel, _LARGE_PX)
    title = say("Map {number} of {count}: trained, or random?", number=at + 1, count=count)
    return (
        f'<figure class="hv-blind-asked"><img src="{url}" alt="{escape(title)}">'
        f"<figcaption>{escape(title)}</figcaption></figure>{status}"
    )


def _verdict(test: BlindTest, answers: str, at: int) -> str:
    facts = {"number": at + 1, "channel": test.maps[at].channel}
    truth = (
        say("Map {number} is channel {channel} of the trained network.", **facts)
        if test.maps[at].is_trained
        else say("Map {number} is channel {channel} with random weights.", **facts)
    )
    verdict = say("Right.") if test.is_right(answers, at) else say("Not quite.")
    return f"{verdict} {truth}"


def _row_html(test: BlindTest, answers: str, grids: dict[bool, Grid]) -> str:
    tiles = []
    for at, each in enumerate(test.maps):
        url = _url(grids[each.is_trained], each.channel, _SMALL_PX)
        if at < len(answers):
            word = say("trained") if each.is_trained else say("random")
            state, sign = ("right", "✓") if test.is_right(answers, at) else ("wrong", "✗")
            below, alt = f"{sign} {word}", _verdict(test, answers, at)
        else:
            state = "asked" if at == len(answers) else ""
            below, alt = str(at + 1), say("Map {number}", number=at + 1)
        tiles.append(
            f'<li class="{state}"><img src="{url}" alt="{escape(alt)}">'
            f'<span aria-hidden="true">{escape(below)}</span></li>'
        )
    return f'<ol class="hv-blind-row">{"".join(tiles)}</ol>'


def _url(grid: Grid, channel: int, side: int) -> str:
    """Return a channel's map as the URL of a picture, a cell one pixel or more."""
    rows, columns = grid.shape[1:]
    return data_url(grid.channel_png(channel, max(1, side // max(rows, columns))))
