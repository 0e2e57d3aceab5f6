"""Show the poolings that the network itself has, each with a map before it and behind it.

The page draws the two maps, and the numbers behind a picked cell.
"""

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
from hookviz.ui.lessons.picks import choose, pick, picked, remember_link, remember_shown
from hookviz.ui.state import Cell, plain
from hookviz.wording import number, times

PICKED = "picked"
"""Among the options the place of the pooling that a learner picked; a lesson's file has none."""

_KINDS = {"max": mark("Largest"), "average": mark("Average")}
"""The kinds of pooling, as people read them."""


def _own_poolings(scene: LessonScene) -> tuple[Pooling, ...]:
    """Return the network's poolings, in order of execution."""
    found: tuple[Pooling, ...] = scene.cached(
        ("poolings",),
        lambda: poolings(scene.model, scene.model_input),
        lambda each: 1000 + sum(one.before.nbytes + one.after.nbytes for one in each),
    )
    return found


def picked_pooling(found: tuple[Pooling, ...], text: str) -> int:
    """Return the place of the pooling that was picked, the first without one."""
    return min(int(text), len(found) - 1) if text.isdecimal() else 0


def _described(pooling: Pooling) -> str:
    """Tell a pooling's windows and steps in a sentence."""
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


def told(scene: LessonScene, found: tuple[Pooling, ...], at: int) -> str:
    """Tell which pooling is shown, or that the network has none, in a sentence or two."""
    if not found:
        return say(
            "{model} has no pooling of maps. A convolution that takes larger steps makes maps "
            "smaller, too.",
            model=scene.model.title,
        )
    where = say(
        "{model} pools {count} times; this is number {number}.",
        model=scene.model.title,
        count=len(found),
        number=at + 1,
    )
    return say("{sentence} {another}", sentence=where, another=_described(found[at]))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = _own_poolings(scene)
    at = picked_pooling(found, options.get(PICKED, ""))
    return {"poolings": len(found), "told": told(scene, found, at)}


def _link(scene: LessonScene, _options: Options) -> Mapping[str, str]:
    found = _own_poolings(scene)
    return {"layer": found[0].layer} if found and found[0].layer else {}


PART = Part(
    name="own-pooling",
    sentence="The poolings that the network itself has, with their windows and steps, each with a "
    "channel before it and behind it; a click on a cell shows the numbers that it came from.",
    facts=_facts,
    link=_link,
)


_MOST_CELLS = 25  # of a window that is shown number by number


def show(scene: LessonScene, _options: Options, key: str) -> None:
    """Draw the choice of a pooling and its two maps; where there is none, say so."""
    found = _own_poolings(scene)
    if not found:
        st.info(plain(told(scene, found, 0)), icon=":material/info:")
        return
    names = [each.layer or say("number {place}", place=at + 1) for at, each in enumerate(found)]
    at = choose(
        st.segmented_control,
        say("Pooling"),
        range(len(found)),
        key,
        "pooling",
        first=0,
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    pooling = found[at]
    remember_shown(key, {PICKED: str(at)}, {PICKED: "0"})
    if pooling.layer:
        remember_link(key, {"layer": pooling.layer, "channel": str(pooling.channel)})
    rows, columns = pooling.after.shape
    row, column = picked(key, "cell", divmod(int(pooling.after.argmax()), columns))
    cell = min(row, rows - 1), min(column, columns - 1)
    _show_maps(pooling, cell, key)
    _show_window(pooling, cell)


def _show_maps(pooling: Pooling, cell: Cell, key: str) -> None:
    """Draw the map before and behind in the same colours; a click in either picks a cell."""
    before = grid_of(pooling.before[None])
    after = grid_of(pooling.after[None], limits=before.limits)
    take = partial(pick, key, "cell")
    window = pooling.cells(*cell)
    inside = pooling.before[window]
    down, across = divmod(int(inside.argmax()), inside.shape[1])
    at = window[0].start + down, window[1].start + across

    def take_before(picked_cell: Cell) -> None:
        """Pick the cell behind whose window is nearest to a cell before."""
        shapes = zip(picked_cell, pooling.after.shape, pooling.before.shape, strict=True)
        take(tuple(min(place * count // size, count - 1) for place, count, size in shapes))

    first, second = say("Before"), say("Pooled")
    columns = st.columns(2, gap="small", wrap=False)
    with columns[0]:
        st.caption(f"**{first}** · {times(pooling.before.shape)}")
        show_map(before, 0, pooling.before, at, take_before, key=f"{key}-before")
    with columns[1]:
        st.caption(f"**{second}** · {times(pooling.after.shape)}")
        show_map(after, 0, pooling.after, cell, take, key=f"{key}-pooled")


def _show_window(pooling: Pooling, cell: Cell) -> None:
    """Show the numbers that the picked one was made of, where they are few."""
    inside, value = pooling.before[pooling.cells(*cell)], number(float(pooling.after[cell]))
    result = (
        say("The largest of {count} is {value}.", count=inside.size, value=value)
        if pooling.kind == "max"
        else say("The average of {count} is {value}.", count=inside.size, value=value)
    )
    table = ""
    if inside.size <= _MOST_CELLS:
        taken = int(np.argmax(inside)) if pooling.kind == "max" else -1
        table = number_table(inside, say("Before"), taken=taken)
        table += '<span aria-hidden="true">→</span>'
    st.html(f'<div class="hv-came-from">{table}<b>{escape(result)}</b></div>')
