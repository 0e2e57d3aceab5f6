"""Register the components of JavaScript and CSS, and pack the data that they are given.

A component's own files stand beside this one; what it shares with the explorer is in the folder of
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
    """Bundle a component's module and those that it imports into one script without imports.

    `afterHead` of ``page.js`` waits for the page's head, whose colours and words a component draws
    with.
    """
    modules = bundle(_FOLDER / "page.js", _FOLDER / name)
    begin, draw = scope(_FOLDER / "page.js"), scope(_FOLDER / name)
    return f"{modules}\nexport default {begin}.afterHead({draw}.main);\n"


@cache
def component(name: str, *, js: str = "", css: str = "") -> Any:
    """Register a Streamlit component once, of ``NAME.js`` and ``NAME.css`` or the files named."""
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
    **heard: Callable[[Any], None],
) -> None:
    """Show a component, and hear what it sends.

    Args:
        name: of the component.
        key: of it in Streamlit's state.
        facts: what it draws.
        picture: likewise, where there is one.
        files: its ``js`` and ``css``, where they are not called as it is.
        heard: for each name under which it sends something what gets that. It comes from a browser,
            so that it can be anything but None.
    """

    def tell(part: str) -> None:
        sent = st.session_state.get(key, {}).get(part)
        match sent:
            case {"number": int(number), "value": value}:  # of ahead.js
                st.session_state[f"{key} taken"] = max(number, taken(key))
                sent = value
        if sent is not None:  # else the component has gone since
            heard[part](sent)

    component(name, **(files or {}))(
        key=key,
        data=packed({"taken": taken(key), **facts}, picture),
        **{f"on_{part}_change": partial(tell, part) for part in heard},
    )


def each_once(key: str, hear: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return what hears each of the values that ``counted`` of ``page.js`` sends, and none twice.

    Of two requests that wait for the same run Streamlit keeps the newer one's trigger. So the
    browser sends a value until `mount` tells it, by `taken`, that it was heard.
    """

    def hear_all(sent: object) -> None:
        for each in sent if isinstance(sent, list) else ():
            match each:
                case {"number": int(number), "value": value} if number > taken(key):
                    st.session_state[f"{key} taken"] = number
                    hear(value)

    return hear_all


def taken(key: str) -> int:
    """Return the number of the last value that was heard of a component, 0 before one."""
    number: int = st.session_state.get(f"{key} taken", 0)
    return number


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """Pack a component's data: the length of a text, that text in JSON, and a picture if any.

    As bytes, since Streamlit writes a dictionary as JSON twice and looks through it for tables.
    ``unpacked`` in ``shared.js`` reads it.
    """
    # With the language, so that a component is drawn anew in another; facts of its own come first.
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture
