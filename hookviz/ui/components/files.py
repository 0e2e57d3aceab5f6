"""Streamlit components in plain JavaScript, each in a file of its own beside this one."""

import base64
import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent
_EXPORT = "export default function"
_NAMED = re.compile(r"^export (?!default)", re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)


def source(name: str) -> str:
    """The text of a component's file."""
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


def data_url(picture: bytes, kind: str = "png") -> str:
    """An image file as a URL that a component's data can carry."""
    return f"data:image/{kind};base64," + base64.b64encode(picture).decode()


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """A component's data: the length of a text, that text in JSON, and a picture if there is one.

    As bytes, since Streamlit writes a dictionary as JSON twice and looks through it for tables.
    ``unpacked`` in ``shared.js`` reads it.
    """
    # With the language, so that a component is drawn anew in another; facts of its own come first.
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture


def unpack_picture(data: bytes) -> bytes:
    """The picture in what `packed` made."""
    (length,) = struct.unpack_from("<I", data)
    return data[4 + length :]


def unpack_facts(data: bytes) -> dict[str, Any]:
    """The facts in what `packed` made."""
    (length,) = struct.unpack_from("<I", data)
    facts: dict[str, Any] = json.loads(data[4 : 4 + length])
    return facts
