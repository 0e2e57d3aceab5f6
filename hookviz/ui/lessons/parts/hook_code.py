"""A script of plain PyTorch, its constants to choose, and what it prints and draws."""

from collections.abc import Mapping

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.scripts import Control, Value, read_script, run_script
from hookviz.ui.components.chart import chart
from hookviz.ui.lessons.script_html import script_html
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_IMAGE = "image"  # what a script calls the picture that it looks at; all others share one scale
_BUTTONS = 5  # values; more are a slider
_SLIDER = 260  # pixels
_FAR_APART = 100  # times; from there on the axis of a chart is logarithmic
_WIDE = 160  # pixels of a map


def show(_scene: LessonScene, options: Options, key: str) -> None:
    """The constants, what came of the script, and its code, which is the code that ran."""
    script = read_script(options["script"])
    choices: dict[str, Value] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for control in script.controls:
            choices[control.name] = _choose(control, key)
    run = run_script(script, choices)
    with st.container(horizontal=True, gap="small"):
        _show_pictures(run.pictures)
        with st.container(width="stretch"):
            st.code("\n".join(run.printed), language=None, wrap_lines=True)
    if run.bars:
        _show_bars(run.bars, key)
    code = script.with_choices(choices)
    st.html(script_html(code, tuple(choices), say("The code of {name}.py", name=script.name)))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(say("This very code ran, with what you chose. It runs without HookViz, too."))
        st.download_button(
            say("Download"),
            code,
            f"{script.name}.py",
            "text/x-python",
            icon=":material/download:",
            type="tertiary",
            key=f"{key} file",
            on_click="ignore",
        )


def _choose(control: Control, key: str) -> Value:
    """What a constant is to be."""
    name = f"{key} {control.name}"
    if len(control.values) > _BUTTONS:
        return st.select_slider(
            control.name,
            control.values,
            value=control.start,
            format_func=str,
            key=name,
            width=_SLIDER,
        )
    chosen = st.segmented_control(
        control.name,
        control.values,
        default=control.start,
        format_func=str,
        required=True,
        key=name,
        width="content",
    )
    return control.start if chosen is None else chosen


def _show_pictures(pictures: Mapping[str, NDArray[np.float32]]) -> None:
    """The maps side by side, on one scale that is symmetric where there are values below zero."""
    maps = {title: values for title, values in pictures.items() if title != _IMAGE}
    size = max((float(np.abs(values).max()) for values in maps.values()), default=0.0) or 1.0
    signed = any((values < 0).any() for values in maps.values())
    for title, values in pictures.items():
        with st.container(width=_WIDE):
            grid = _drawn(values, title, size, signed=signed)
            magnified = max(1, _WIDE // max(values.shape))
            alt = f"{title}: {grid.legend}"
            st.image(grid.channel_png(0, magnified), width=_WIDE, alt=alt)
            span = say(
                "from {low} to {high}",
                low=number(float(values.min())),
                high=number(float(values.max())),
            )
            st.caption(f"{plain(title)}: {span}")


def _drawn(values: NDArray[np.float32], title: str, size: float, *, signed: bool) -> Grid:
    if title == _IMAGE:
        return make_grid(values[None], colormap="gray", title=title)
    ends = make_grid(np.array([[[-size if signed else 0.0, size]]], np.float32))
    colormap = diverging() if signed else "viridis"
    return make_grid(values[None], limits=ends.limits, colormap=colormap, title=title)


def _show_bars(bars: Mapping[str, NDArray[np.float64]], key: str) -> None:
    every = np.concatenate(list(bars.values()))
    above = every[every > 0]
    panel = ChartPanel(
        say("What the script measured"),
        tuple(str(place + 1) for place in range(len(next(iter(bars.values()))))),
        bars,
        unit=say("by layer"),
        log=bool(len(above) and above.max() > _FAR_APART * above.min()),
    )
    chart(panel, f"{key} chart", None)
