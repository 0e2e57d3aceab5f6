"""Register components of JavaScript and CSS, and pack their data.

A component's files are in this folder; files that it shares with the explorer are in the folder of
the explorer's client.
"""

import json
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from hookviz.explorer.client_files import bundle, scope, sheet
from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent


def script(name: str) -> str:
    """Bundle a component's module and its imports into one script.

    `afterHead` of ``page.js`` waits for the page's head, which has the colours and words.
    """
    modules = bundle(_FOLDER / "page.js", _FOLDER / name)
    begin, draw = scope(_FOLDER / "page.js"), scope(_FOLDER / name)
    return f"{modules}\nexport default {begin}.afterHead({draw}.main);\n"


@cache
def style(file: Path) -> str:
    """Return a ``<style>`` element with the sheet of a CSS file."""
    return f"<style>{file.read_text('utf-8')}</style>"


@cache
def component(name: str, *, js: str = "", css: str = "") -> Any:
    """Register a Streamlit component once, from ``NAME.js`` and ``NAME.css`` or other files."""
    return st.components.v2.component(
        f"hookviz_{name}",
        css=sheet(_FOLDER / (css or f"{name}.css")),
        js=script(js or f"{name}.js"),
    )


def mount(
    name: str,
    key: str,
    facts: Mapping[str, Any],
    picture: bytes = b"",
    *,
    files: Mapping[str, str] | None = None,
    **callbacks: Callable[[Any], None],
) -> None:
    """Show a component, and call a callback for each value that it sends.

    Args:
        name: of the component.
        key: of the component in Streamlit's state.
        facts: its data.
        picture: bytes after the data.
        files: its ``js`` and ``css``, if they have other names than the component.
        callbacks: by the name under which the component sends a value. The value comes from a
            browser and can be anything but None.
    """

    def call(part: str) -> None:
        sent = st.session_state.get(key, {}).get(part)
        match sent:
            case {"number": int(number), "value": value}:  # of ahead.js
                st.session_state[f"{key} taken"] = max(number, _last_number(key))
                sent = value
        if sent is not None:  # else the component is no longer on the page
            callbacks[part](sent)

    component(name, **(files or {}))(
        key=key,
        data=packed({"taken": _last_number(key), **facts}, picture),
        **{f"on_{part}_change": partial(call, part) for part in callbacks},
    )


def each_once(key: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a callback for ``counted`` of ``page.js`` that passes each of its values on once.

    Of two requests for the same run Streamlit keeps the newer trigger alone. So the browser repeats
    a value until `mount` confirms its number.
    """

    def receive(sent: object) -> None:
        for each in sent if isinstance(sent, list) else ():
            match each:
                case {"number": int(number), "value": value} if number > _last_number(key):
                    st.session_state[f"{key} taken"] = number
                    callback(value)

    return receive


def _last_number(key: str) -> int:
    """Return the number of a component's last received value, 0 before one."""
    number: int = st.session_state.get(f"{key} taken", 0)
    return number


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """Pack a component's data for ``unpacked`` of ``shared.js``: length, JSON text, picture.

    Streamlit would write a dictionary as JSON twice and search it for tables.
    """
    # with the language: the component is drawn again in another; its own facts come first
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture
