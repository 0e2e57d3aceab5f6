"""Run a plain-PyTorch script: show its constants to choose, its code, what it prints and draws."""

import io
import json
import keyword
import tokenize
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.hook_code import CHOICES
from hookviz.lessons.scripts import Control, Value, read_script, run_script
from hookviz.ui.components.chart import chart
from hookviz.ui.lessons.picks import choose, remember_shown
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_IMAGE = "image"  # what a script calls the picture that it looks at; all others share one scale
_BUTTONS = 5  # values; more are a slider
_SLIDER = 260  # pixels
_FAR_APART = 100  # times; from there on the axis of a chart is logarithmic
_WIDE = 160  # pixels of a map


def show(_scene: LessonScene, options: Options, key: str) -> None:
    """Draw the constants, what came of the script, and its code, which is the code that ran."""
    script = read_script(options["script"])
    choices: dict[str, Value] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for control in script.controls:
            choices[control.name] = _choose(control, key)
    chosen = {
        control.name: choices[control.name]
        for control in script.controls
        if choices[control.name] != control.start
    }
    remember_shown(key, {CHOICES: json.dumps(chosen)}, {CHOICES: json.dumps({})})
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
    """Show the control for a constant, and return its value."""
    if len(control.values) > _BUTTONS:
        widget: Callable[..., Any] = partial(st.select_slider, width=_SLIDER)
    else:
        widget = partial(st.segmented_control, required=True, width="content")
    return choose(
        widget,
        control.name,
        control.values,
        key,
        control.name,
        first=control.start,
        format_func=str,
    )


def _show_pictures(pictures: Mapping[str, NDArray[np.float32]]) -> None:
    """Show the maps side by side, on one scale, symmetric where values are below zero."""
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
    heights = np.concatenate(list(bars.values()))
    above = heights[heights > 0]
    panel = ChartPanel(
        say("What the script measured"),
        tuple(str(index + 1) for index in range(len(next(iter(bars.values()))))),
        bars,
        unit=say("by layer"),
        log=bool(len(above) and above.max() > _FAR_APART * above.min()),
    )
    chart(panel, f"{key} chart", None)


def script_html(text: str, constants: Collection[str], label: str) -> str:
    """Return the script in a box that can be scrolled by keyboard, named by `label`."""
    lines = [line.rstrip("\n") for line in text.splitlines(keepends=True)]
    pieces: list[str] = []
    row, column = 1, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        while row < token.start[0]:
            pieces.append(escape(lines[row - 1][column:]) + "\n")
            row, column = row + 1, 0
        if token.type == tokenize.ENDMARKER:
            break
        pieces.append(escape(lines[row - 1][column : token.start[1]]))
        pieces.append(_marked(token, constants))
        row, column = token.end
    code = "".join(pieces)
    shown = f'<pre class="hv-script" tabindex="0" role="region" aria-label="{escape(label)}">'
    return f"<style>{_style()}</style>{shown}<code>{code}</code></pre>"


def _marked(token: tokenize.TokenInfo, constants: Collection[str]) -> str:
    """Return a piece of code as HTML: keywords bold, comments fainter, chosen constants marked."""
    text = escape(token.string)
    if token.type == tokenize.COMMENT:
        return f'<span class="comment">{text}</span>'
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return f"<b>{text}</b>"
    if token.type == tokenize.NAME and token.string in constants:
        return f"<mark>{text}</mark>"
    return text


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
