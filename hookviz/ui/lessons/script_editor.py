"""Let the lines of a lesson's script be edited and run, apart and with a stop.

What somebody writes stays in their session: it is in no link, so that nobody runs by a click on one
what somebody else has written, and it runs when *Run* is pressed, never when a page is opened.
"""

import io
import keyword
import time
import tokenize
from collections.abc import Collection
from functools import cache
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.own_code import OwnResult, OwnRun, files_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.script_scene import set_up_of
from hookviz.lessons.scripts import Script

_LINE = 22  # pixels of a line in the editor
_FEWEST, _MOST = 8, 24  # lines that it is high
_TICK = 0.2  # seconds between two looks at a run


def is_edited(key: str) -> bool:
    """Return whether the part shows the editor."""
    return _name(key, "text") in st.session_state


def offer_to_edit(key: str, lines: str) -> None:
    """Show the button that puts an editor with those lines in the place of the code."""
    st.button(
        say("Edit these lines"),
        icon=":material/edit:",
        key=f"{key} edit",
        on_click=_begin,
        args=(key, lines),
    )


def edited_run(key: str) -> OwnResult | None:
    """Return what came of the lines that were run last; None before, and while they run."""
    running = _running(key)
    return running.result if running else None


def edit(scene: LessonScene, script: Script, key: str) -> None:
    """Show the editor, its buttons, and how long the lines have been running."""
    lines = st.session_state[_name(key, "text")]
    with st.container(key=f"hv-own-lines-{key}"), st.form(f"{key} form", border=False):
        height = _LINE * min(_MOST, max(_FEWEST, lines.count("\n") + 2))
        written = st.text_area(
            say("Your lines, which run after the set-up; Ctrl and Enter run them"),
            lines,
            height=height,
            key=f"{key} lines",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            asked = st.form_submit_button(
                say("Run"), icon=":material/play_arrow:", type="primary", key=f"{key} run"
            )
            st.form_submit_button(
                say("As it was"),
                icon=":material/undo:",
                type="tertiary",
                key=f"{key} back",
                on_click=_leave,
                args=(key,),
            )
    st.html(folded_html(set_up_of(script.text), say("Set-up, which runs before")))
    if asked:
        _stop(key)
        st.session_state[_name(key, "text")] = written
        run = OwnRun(set_up_of(script.text), written, files_of(scene))
        st.session_state[_name(key, "run")] = run
    _wait(key)


def _wait(key: str) -> None:
    """Wait for the lines that run; any click ends the waiting, and one on *Stop* the lines too."""
    running = _running(key)
    if running is None or running.result is not None:
        return
    began = time.monotonic()
    place = st.empty()
    with place.container(horizontal=True, vertical_alignment="center"):
        st.button(
            say("Stop"), icon=":material/stop:", key=f"{key} stop", on_click=_stop, args=[key]
        )
        line = st.empty()
    while not running.wait(_TICK):
        line.caption(
            say(
                "Your lines run in a process of their own: {seconds} s",
                seconds=f"{time.monotonic() - began:.0f}",
            )
        )
    place.empty()


def _begin(key: str, lines: str) -> None:
    st.session_state[_name(key, "text")] = lines


def _leave(key: str) -> None:
    _stop(key)
    for name in ("text", "run"):
        st.session_state.pop(_name(key, name), None)


def _stop(key: str) -> None:
    running = _running(key)
    if running is not None and running.result is None:
        running.stop()
        running.wait(5)


def _running(key: str) -> OwnRun | None:
    run: OwnRun | None = st.session_state.get(_name(key, "run"))
    return run


def _name(key: str, name: str) -> str:
    return f"_own lines {key} {name}"  # a key that no widget has can't be set from outside


def folded_html(text: str, title: str) -> str:
    """Return the code folded below a line that opens it."""
    lines = len(text.splitlines())
    summary = f"<summary>{escape(title)} <span>({lines})</span></summary>"
    return f'<details class="hv-script-folded">{summary}{script_html(text, (), title)}</details>'


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
    return Path(__file__).with_name("script_text.css").read_text("utf-8")
