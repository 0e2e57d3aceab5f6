"""Show the network's own poolings, with a map before and after each, and a cell's numbers."""

from collections.abc import Mapping
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from hookviz.explaining.layers.poolings import Pooling, poolings
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.ui.components.pictures import show_map
from hookviz.ui.lessons.figures import grid_of, number_table
from hookviz.ui.lessons.picks import (
    choose_button,
    pick,
    picked_cell,
    remember_link,
    remember_options,
)
from hookviz.ui.state import Cell, plain
from hookviz.wording import number, times

PICKED = "picked"
"""Option that the page adds: the position of the picked pooling."""

_KINDS = {"max": mark("Largest"), "average": mark("Average")}


def _own_poolings(scene: LessonScene) -> tuple[Pooling, ...]:
    """Return the network's poolings, in order of execution."""
    return scene.cached(
        ("poolings",),
        lambda: poolings(scene.model, scene.model_input),
        lambda each: 1000 + sum(one.before.nbytes + one.after.nbytes for one in each),
    )


def picked_pooling(own: tuple[Pooling, ...], text: str) -> int:
    """Return the position of the picked pooling, or of the first."""
    return min(int(text), len(own) - 1) if text.isdecimal() else 0


def _described(pooling: Pooling) -> str:
    """Describe a pooling's windows and steps in a sentence."""
    before, after = times(pooling.before.shape), times(pooling.after.shape)
    kind = say(_KINDS[pooling.kind])
    if pooling.window is None or pooling.stride is None:
        return say(
            "{kind} of each window, as large as the map needs: {before} cells become {after}.",
            kind=kind,
            before=before,
            after=after,
        )
    return say(
        "{kind} of each {window} cells, with a step of {stride}: {before} cells become {after}.",
        kind=kind,
        window=times(pooling.window),
        stride=times(pooling.stride[:1] if len(set(pooling.stride)) == 1 else pooling.stride),
        before=before,
        after=after,
    )


def about_pooling(scene: LessonScene, own: tuple[Pooling, ...], at: int) -> str:
    """Describe the pooling at a position, or the lack of one, in a sentence or two."""
    if not own:
        return say(
            "{model} has no pooling of maps. A convolution that takes larger steps makes maps "
            "smaller, too.",
            model=scene.model.title,
        )
    position = say(
        "{model} pools {count} times; this is number {number}.",
        model=scene.model.title,
        count=len(own),
        number=at + 1,
    )
    return say("{sentence} {another}", sentence=position, another=_described(own[at]))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    own = _own_poolings(scene)
    at = picked_pooling(own, options.get(PICKED, ""))
    return {"poolings": len(own), "told": about_pooling(scene, own, at)}


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    own = _own_poolings(scene)
    return {"layer": own[0].layer} if own and own[0].layer else {}


PART = Part(
    name="own-pooling",
    sentence="The poolings that the network itself has, with their windows and steps, each with a "
    "channel before it and behind it; a click on a cell shows the numbers that it came from.",
    facts=_facts,
    link=_link,
)


_MOST_CELLS = 25  # of a window whose numbers are shown


def show(scene: LessonScene, _options: Options, key: str) -> None:
    """Draw the choice of a pooling and its two maps, or tell that there is none."""
    own = _own_poolings(scene)
    if not own:
        st.info(plain(about_pooling(scene, own, 0)), icon=":material/info:")
        return
    names = {at: each.layer or say("number {place}", place=at + 1) for at, each in enumerate(own)}
    label = say("Pooling")
    at = choose_button(label, names, key, "pooling", first=0, label_visibility="collapsed")
    pooling = own[at]
    remember_options(key, {PICKED: str(at)}, {PICKED: "0"})
    if pooling.layer:
        remember_link(key, {"layer": pooling.layer, "channel": str(pooling.channel)})
    cell = picked_cell(key, pooling.after)
    _show_maps(pooling, cell, key)
    _show_window(pooling, cell)


def _show_maps(pooling: Pooling, cell: Cell, key: str) -> None:
    """Draw the map before and after in the same colours; a click in either picks a cell."""
    before = grid_of(pooling.before[None])
    after = grid_of(pooling.after[None], limits=before.limits)
    pick_cell = partial(pick, key, "cell")
    window = pooling.cells(*cell)
    inside = pooling.before[window]
    down, across = divmod(int(inside.argmax()), inside.shape[1])
    at = window[0].start + down, window[1].start + across

    def pick_before(cell_before: Cell) -> None:
        """Pick the cell after the pooling whose window is nearest to a cell before it."""
        shapes = zip(cell_before, pooling.after.shape, pooling.before.shape, strict=True)
        pick_cell(tuple(min(index * count // size, count - 1) for index, count, size in shapes))

    first, second = say("Before"), say("Pooled")
    columns = st.columns(2, gap="small", wrap=False)
    with columns[0]:
        st.caption(f"**{first}** · {times(pooling.before.shape)}")
        show_map(before, 0, pooling.before, at, pick_before, key=f"{key}-before")
    with columns[1]:
        st.caption(f"**{second}** · {times(pooling.after.shape)}")
        show_map(after, 0, pooling.after, cell, pick_cell, key=f"{key}-pooled")


def _show_window(pooling: Pooling, cell: Cell) -> None:
    """Show the window of the picked cell with its numbers, if they are few."""
    inside, value = pooling.before[pooling.cells(*cell)], number(float(pooling.after[cell]))
    result = (
        say("The largest of {count} is {value}.", count=inside.size, value=value)
        if pooling.kind == "max"
        else say("The average of {count} is {value}.", count=inside.size, value=value)
    )
    table = ""
    if inside.size <= _MOST_CELLS:
        marked = int(np.argmax(inside)) if pooling.kind == "max" else -1
        table = number_table(inside, say("Before"), marked=marked)
        table += '<span aria-hidden="true">→</span>'
    st.html(f'<div class="hv-came-from">{table}<b>{escape(result)}</b></div>')
