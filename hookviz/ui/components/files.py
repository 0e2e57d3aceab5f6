"""Read the components' JavaScript and CSS, bundle it, and pack the data they are given.

A component's own files stand beside this one; what it shares with the explorer is in the folder of
the explorer's client.
"""

import json
import re
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([./\w]+)";\n', re.MULTILINE)
_NAMED = re.compile(r"^export (?=(?:const|class|function|async function) (\w+))", re.MULTILINE)
_DEFAULT = "export default function"
# Whole lines of comments and types: a third of what each new page would be sent.
_COMMENT = re.compile(
    r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/[ \t]*)\n", re.MULTILINE | re.DOTALL
)
_SHEET = re.compile(r'^@import "([^"]+)";\n', re.MULTILINE)


def sheet(name: str) -> str:
    """Return the text of a component's style sheet, with those that it imports in their place."""
    return _joined(_FOLDER / name)


def _joined(file: Path) -> str:
    return _SHEET.sub(lambda found: _joined(file.parent / found[1]), file.read_text("utf-8"))


def script(name: str) -> str:
    """Bundle a component's module and those that it imports into one script without imports.

    `afterHead` of ``page.js`` waits for the page's head, whose colours and words a component draws
    with.
    """
    modules = bundle(_FOLDER / "page.js", _FOLDER / name)
    begin, draw = _scope(_FOLDER / "page.js"), _scope(_FOLDER / name)
    return f"{modules}\nexport default {begin}.afterHead({draw}.main);\n"


def bundle(*files: Path) -> str:
    """Put modules and those that they import into one script, each in the scope of a function.

    A module stands once, after those that it imports. What it exports are the fields of a constant,
    called by its folder and its name: ``client_tiles.inSprite``. Its default is the field ``main``.
    """
    modules: dict[Path, str] = {}
    for file in files:
        _collect(file.resolve(), modules)
    return "\n".join(modules.values())


def _collect(file: Path, modules: dict[Path, str]) -> None:
    """Add a module as a function's scope, behind the modules that it imports."""
    if file in modules:
        return
    text = _COMMENT.sub("", file.read_text("utf-8"))
    for _, path in _IMPORT.findall(text):
        _collect((file.parent / path).resolve(), modules)

    def taken(found: re.Match[str]) -> str:
        names = found[1].strip().replace(" as ", ": ")
        return f"const {{ {names} }} = {_scope((file.parent / found[2]).resolve())};\n"

    exported = _NAMED.findall(text)
    body = _NAMED.sub("", _IMPORT.sub(taken, text))
    if _DEFAULT in body:
        body = body.replace(_DEFAULT, "const main = function")
        exported.append("main")
    assert not re.search("^(import|export) ", body, re.MULTILINE), f"{file.name} can't be bundled"
    modules[file] = (
        f"const {_scope(file)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
    )


def _scope(file: Path) -> str:
    return f"{file.parent.name}_{file.stem}"


@cache
def component(name: str, *, js: str = "", css: str = "") -> Any:
    """Register a Streamlit component once, of ``NAME.js`` and ``NAME.css`` or the files named."""
    return st.components.v2.component(
        f"hookviz_{name}", css=sheet(css or f"{name}.css"), js=script(js or f"{name}.js")
    )


def show(
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
            so that it can be anything, and it is None where the component is gone.
    """

    def tell(part: str) -> None:
        heard[part](st.session_state.get(key, {}).get(part))

    component(name, **(files or {}))(
        key=key,
        data=packed(facts, picture),
        **{f"on_{part}_change": partial(tell, part) for part in heard},
    )


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """Pack a component's data: the length of a text, that text in JSON, and a picture if any.

    As bytes, since Streamlit writes a dictionary as JSON twice and looks through it for tables.
    ``unpacked`` in ``shared.js`` reads it.
    """
    # With the language, so that a component is drawn anew in another; facts of its own come first.
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture
