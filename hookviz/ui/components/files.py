"""Read the components' JavaScript and CSS beside this file, and pack the data they are given."""

import json
import re
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent
_EXPORT = "export default function"
_NAMED = re.compile(r"^export (?!default)", re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)


def source(name: str) -> str:
    """Return the text of a component's file."""
    return (_FOLDER / name).read_text("utf-8")


def script(name: str) -> str:
    """Bundle a component's module and those that it imports into one script without imports.

    Each module stands after those that it imports, and ``shared.js``'s `afterHead` waits for the
    page's head, whose colours and words a component draws with.
    """
    modules: dict[str, str] = {}
    _collect("shared.js", modules)
    _collect(name, modules)
    joined = "".join(modules.values()).replace(_EXPORT, "const draw = function")
    return joined + "\nexport default afterHead(draw);\n"


def _collect(name: str, modules: dict[str, str]) -> None:
    """Add a module's text without its imports and exports, behind the modules that it imports."""
    if name in modules:
        return
    text = source(name)
    for imported in _IMPORT.findall(text):
        _collect(imported, modules)
    modules[name] = _NAMED.sub("", _IMPORT.sub("", text))


@cache
def component(name: str, *, js: str = "", css: str = "") -> Any:
    """Register a Streamlit component once, of ``NAME.js`` and ``NAME.css`` or the files named."""
    return st.components.v2.component(
        f"hookviz_{name}", css=source(css or f"{name}.css"), js=script(js or f"{name}.js")
    )


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """Pack a component's data: the length of a text, that text in JSON, and a picture if any.

    As bytes, since Streamlit writes a dictionary as JSON twice and looks through it for tables.
    ``unpacked`` in ``shared.js`` reads it.
    """
    # With the language, so that a component is drawn anew in another; facts of its own come first.
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture
