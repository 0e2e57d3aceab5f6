"""Show a lesson's script as HTML, and an editor that runs a learner's own lines of it.

The lines stay in the session. No link has them, and they run at *Run* alone, so that nobody runs
another person's lines by opening a page.
"""

import io
import keyword
import time
import tokenize
from collections.abc import Collection
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.own_code import OwnResult, OwnRun, files_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scripts import Script, set_up_of
from hookviz.ui.components.files import style

_SHEET = Path(__file__).with_name("script_text.css")
_LINE_PX = 22
_MIN_LINES, _MAX_LINES = 8, 24  # of the editor's height
_TICK_S = 0.2  # between two looks at a run


def is_edited(key: str) -> bool:
    """Return whether a part shows the editor."""
    return _name(key, "text") in st.session_state


def offer_to_edit(key: str, lines: str) -> None:
    """Show the button that replaces the code by an editor with those lines."""
    st.button(
        say("Edit these lines"),
        icon=":material/edit:",
        key=f"{key} edit",
        on_click=_begin,
        args=(key, lines),
    )


def edited_run(key: str) -> OwnResult | None:
    """Return the result of the last run; None before it, and during one."""
    running = _running(key)
    return running.result if running else None


def edit(scene: LessonScene, script: Script, key: str) -> None:
    """Show the editor, its buttons, and the time of a run."""
    lines = st.session_state[_name(key, "text")]
    with st.container(key=f"hv-own-lines-{key}"), st.form(f"{key} form", border=False):
        height = _LINE_PX * min(_MAX_LINES, max(_MIN_LINES, lines.count("\n") + 2))
        written = st.text_area(
            say("Your lines, which run after the set-up; Ctrl and Enter run them"),
            lines,
            height=height,
            key=f"{key} lines",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            is_sent = st.form_submit_button(
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
    if is_sent:
        _stop(key)
        st.session_state[_name(key, "text")] = written
        run = OwnRun(set_up_of(script.text), written, files_of(scene))
        st.session_state[_name(key, "run")] = run
    _wait(key)


def _wait(key: str) -> None:
    """Wait for the end of a run; a click ends the waiting, and a click on *Stop* the run."""
    running = _running(key)
    if running is None or running.result is not None:
        return
    began = time.monotonic()
    row = st.empty()
    with row.container(horizontal=True, vertical_alignment="center"):
        st.button(
            say("Stop"), icon=":material/stop:", key=f"{key} stop", on_click=_stop, args=[key]
        )
        line = st.empty()
    while not running.wait(_TICK_S):
        line.caption(
            say(
                "Your lines run in a process of their own: {seconds} s",
                seconds=f"{time.monotonic() - began:.0f}",
            )
        )
    row.empty()


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
    return f"_own lines {key} {name}"  # no widget has this key, so no link can set it


def folded_html(text: str, title: str) -> str:
    """Return code as HTML, folded below a line with its title."""
    lines = len(text.splitlines())
    summary = f"<summary>{escape(title)} <span>({lines})</span></summary>"
    return f'<details class="hv-script-folded">{summary}{script_html(text, (), title)}</details>'


def script_html(text: str, constants: Collection[str], label: str) -> str:
    """Return a script as HTML in a box that a keyboard can scroll, with a `label`.

    Keywords are bold, comments fainter, and the `constants` marked.
    """
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
    box = f'<pre class="hv-script" tabindex="0" role="region" aria-label="{escape(label)}">'
    return f"{style(_SHEET)}{box}<code>{code}</code></pre>"


def _marked(token: tokenize.TokenInfo, constants: Collection[str]) -> str:
    text = escape(token.string)
    if token.type == tokenize.COMMENT:
        return f'<span class="comment">{text}</span>'
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return f"<b>{text}</b>"
    if token.type == tokenize.NAME and token.string in constants:
        return f"<mark>{text}</mark>"
    return text
