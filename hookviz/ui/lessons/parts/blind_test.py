"""Show one map at a time with its two answers, and below it what all before it were."""

from functools import cache, partial
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.drawing.grid import Grid, make_grid
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.blind_test import (
    ANSWERS,
    ROUND,
    TRAINED,
    UNTRAINED,
    BlindTest,
    answers_of,
    blind_test,
    standing,
)
from hookviz.markup import data_url
from hookviz.ui.lessons.picks import pick, picked, remember_shown
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain

_LARGE, _SMALL = 320, 96  # pixels that a map is drawn with at least


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the map that is to be told with its answers, or the score; and the row of all maps."""
    number = max(1, picked(key, ROUND, 1))
    with turn(say("The same network with random weights"), "lesson", model=scene.model.name):
        test = blind_test(scene, options, number)
    answers = answers_of(picked(key, ANSWERS, ""), len(test.maps))
    remember_shown(key, {ANSWERS: answers, ROUND: str(number)}, {ANSWERS: "", ROUND: "1"})
    grids = {
        trained: make_grid(maps, scale="channel", colormap="gray")
        for trained, maps in ((True, test.pair.trained), (False, test.pair.untrained))
    }
    at, count = len(answers), len(test.maps)
    with st.container(key=f"hv-blind-{key}"):
        st.html(f"<style>{_style()}</style>{_head_html(test, answers, grids)}")
        with st.container(horizontal=True, vertical_alignment="center"):
            over = at == count
            for label, letter, shortcut in (
                (say("Trained"), TRAINED, "T"),
                (say("Random weights"), UNTRAINED, "U"),
            ):
                st.button(
                    label,
                    key=f"{key} {letter}",
                    shortcut=shortcut,
                    disabled=over,
                    on_click=partial(_answer, key, letter),
                )
            st.button(
                say("Ten others"),
                key=f"{key} others",
                icon=":material/refresh:",
                type="tertiary",
                disabled=not over,
                on_click=partial(_begin, key, number + 1),
            )
        st.html(_row_html(test, answers, grids))
    st.caption(plain(say("Each map is drawn from its own lowest value, black, to its highest.")))


def _answer(key: str, letter: str) -> None:
    """Add an answer to those there are now: a quick one comes before the run of the one before."""
    pick(key, ANSWERS, picked(key, ANSWERS, "") + letter)


def _begin(key: str, number: int) -> None:
    pick(key, ROUND, number)
    pick(key, ANSWERS, "")


def _head_html(test: BlindTest, answers: str, grids: dict[bool, Grid]) -> str:
    """Return the map that is asked about, large, with what the one before was; or the score."""
    at, count = len(answers), len(test.maps)
    before = _verdict(test, answers, at - 1) if at else ""
    said = f'<p class="hv-blind-said" role="status">{escape(before)}</p>'
    if at == count:
        score = f"{test.right(answers)} / {count}"
        told = escape(standing(test, answers))
        return f'<div class="hv-blind-score"><b>{score}</b><p>{told}</p></div>{said}'
    shown = test.maps[at]
    url = _url(grids[shown.trained], shown.channel, _LARGE)
    title = say("Map {number} of {count}: trained, or random?", number=at + 1, count=count)
    return (
        f'<figure class="hv-blind-asked"><img src="{url}" alt="{escape(title)}">'
        f"<figcaption>{escape(title)}</figcaption></figure>{said}"
    )


def _verdict(test: BlindTest, answers: str, at: int) -> str:
    shown = test.maps[at]
    facts = {"number": at + 1, "channel": shown.channel}
    was = (
        say("Map {number} is channel {channel} of the trained network.", **facts)
        if shown.trained
        else say("Map {number} is channel {channel} with random weights.", **facts)
    )
    right = shown.trained == (answers[at] == TRAINED)
    verdict = say("Right.") if right else say("Not quite.")
    return f"{verdict} {was}"


def _row_html(test: BlindTest, answers: str, grids: dict[bool, Grid]) -> str:
    tiles = []
    for at, shown in enumerate(test.maps):
        url = _url(grids[shown.trained], shown.channel, _SMALL)
        known = at < len(answers)
        right = known and shown.trained == (answers[at] == TRAINED)
        word = say("trained") if shown.trained else say("random")
        sign = ("✓" if right else "✗") if known else ""
        below = f"{sign} {word}" if known else str(at + 1)
        state = ("right" if right else "wrong") if known else "asked" * (at == len(answers))
        alt = _verdict(test, answers, at) if known else say("Map {number}", number=at + 1)
        tiles.append(
            f'<li class="{state}"><img src="{url}" alt="{escape(alt)}">'
            f'<span aria-hidden="true">{escape(below)}</span></li>'
        )
    return f'<ol class="hv-blind-row">{"".join(tiles)}</ol>'


def _url(grid: Grid, channel: int, side: int) -> str:
    """Return a channel's map as a picture; of ones larger than that, cell by pixel."""
    rows, columns = grid.shape[1:]
    return data_url(grid.channel_png(channel, max(1, side // max(rows, columns))))


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
