"""Streamlit components in plain JavaScript, each in a file of its own beside this one."""

import base64
from pathlib import Path

_FOLDER = Path(__file__).parent


def source(name: str) -> str:
    """The text of a component's file."""
    return (_FOLDER / name).read_text("utf-8")


def script(*names: str) -> str:
    """A component's JavaScript, of one file or more, with what all of them share before it."""
    return "".join(map(source, ("shared.js", *names)))


def data_url(picture: bytes, kind: str = "png") -> str:
    """An image file as a URL that a component's data can carry."""
    return f"data:image/{kind};base64," + base64.b64encode(picture).decode()
