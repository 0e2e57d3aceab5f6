"""Write errors, progress bars and JSON to the terminal.

Errors and bars are on standard error, and bars only where that is a terminal. Nothing heavy is
imported: ``hookviz --help`` needs this module.
"""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hookviz.wording import one_line

if TYPE_CHECKING:
    from hookviz.models.fetching import downloads
    from hookviz.types import ModelSpec, Progress

MISTAKE = 2
"""Exit status for what a person got wrong."""


def in_words(error: Exception) -> str:
    """Return an error's text, without the numbers that the operating system puts before it."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{str(error.filename)!r}: " if error.filename is not None else ""
        return f"{where}{error.strerror}."
    return str(error) or type(error).__name__


def print_error(text: str) -> None:
    """Say what went wrong in one line on standard error."""
    click.echo(f"hookviz: {one_line(' '.join(text.split()))}", err=True)


@contextmanager
def progress_bar(label: str) -> "Iterator[Progress]":
    """Show a bar with the time that is left, and yield the callback that moves it."""
    with click.progressbar(
        length=1000, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield lambda share: bar.update(int(1000 * share) - bar.pos)


@contextmanager
def download_bar(spec: "ModelSpec") -> "Iterator[downloads.Report]":
    """Show a bar for the download of a model's weights, and yield the callback that moves it."""
    bar: Any
    with click.progressbar(
        length=spec.download_bytes,
        label=spec.title,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=lambda status: status.text if status else "",
    ) as bar:

        def report(status: "downloads.TransferStatus") -> None:
            bar.length = status.total or bar.length
            bar.update(status.received - bar.pos, status)

        yield report


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
