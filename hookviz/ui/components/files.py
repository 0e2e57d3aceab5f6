"""Read the components' JavaScript and CSS beside this file, and pack the data they are given."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookviz.language.speaking import current

_FOLDER = Path(__file__).parent
_EXPORT = "export default function"


def source(name: str) -> str:
    """Return the text of a component's file."""
    return (_FOLDER / name).read_text("utf-8")


def script(*names: str) -> str:
    """Return a component's JavaScript, of one file or more, after what all of them share.

    A browser may have it before the page's head, whose colours and words it draws with; `afterHead`
    in ``shared.js`` has it wait for that.
    """
    joined = "".join(map(source, ("shared.js", *names)))
    return joined.replace(_EXPORT, "const draw = function") + "\nexport default afterHead(draw);\n"


def packed(facts: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """Pack a component's data: the length of a text, that text in JSON, and a picture if any.

    As bytes, since Streamlit writes a dictionary as JSON twice and looks through it for tables.
    ``unpacked`` in ``shared.js`` reads it.
    """
    # With the language, so that a component is drawn anew in another; facts of its own come first.
    text = json.dumps({"language": current(), **facts}).encode()
    return struct.pack("<I", len(text)) + text + picture


def unpack_picture(data: bytes) -> bytes:
    """Return the picture in what `packed` made."""
    (length,) = struct.unpack_from("<I", data)
    return data[4 + length :]


def unpack_facts(data: bytes) -> dict[str, Any]:
    """Return the facts in what `packed` made."""
    (length,) = struct.unpack_from("<I", data)
    facts: dict[str, Any] = json.loads(data[4 : 4 + length])
    return facts
