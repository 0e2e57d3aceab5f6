"""Print JSON in the terminal."""

import json
import math
from typing import Any

import click


def echo_json(data: Any) -> None:
    r"""Print `data` as JSON; NaN and infinities, which JSON does not have, become null.

    In ASCII, so that no terminal's encoding can put question marks into names. What is no text in
    UTF-8 in a file's name is written as ``\xff``.
    """
    click.echo(json.dumps(_plain(data), indent=2))


def _plain(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, str):
        return _text(data)
    if isinstance(data, dict):
        return {_text(str(key)): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return data


def _text(text: str) -> str:
    """Replace the surrogates that stand for a file name's undecodable bytes.

    Where the locale is C these are all bytes of "é" too, and together they are a letter after all.
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half letters of another kind
        return text.encode("utf-8", "backslashreplace").decode()
