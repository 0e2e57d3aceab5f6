"""Streamlit components in plain JavaScript, each in a file of its own beside this one."""

import base64
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent
_EXPORT = "export default function"


def source(name: str) -> str:
    """The text of a component's file."""
    return (_FOLDER / name).read_text("utf-8")


def script(*names: str) -> str:
    """A component's JavaScript, of one file or more, with what all of them share before it.

    A browser may have it before the page's head, whose colours and words it draws with; `afterHead`
    in ``shared.js`` has it wait for that.
    """
    joined = "".join(map(source, ("shared.js", *names)))
    return joined.replace(_EXPORT, "const draw = function") + "\nexport default afterHead(draw);\n"


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
