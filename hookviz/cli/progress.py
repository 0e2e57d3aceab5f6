"""Show bars on the terminal that tell how far something is.

They are on standard error, and only where that is a terminal.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from hookviz.models.fetching import downloads
from hookviz.types import ModelSpec, Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show a bar with the time that is left, and yield the callback that moves it."""
    with click.progressbar(
        length=1000, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield lambda share: bar.update(int(1000 * share) - bar.pos)


@contextmanager
def download_bar(spec: ModelSpec) -> Iterator[downloads.Report]:
    """Show a bar for the download of a model's weights, and yield the callback that moves it."""
    bar: Any
    with click.progressbar(
        length=spec.download_bytes,
        label=spec.title,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=lambda status: status.text if status else "",
    ) as bar:

        def report(status: downloads.TransferStatus) -> None:
            bar.length = status.total or bar.length
            bar.update(status.received - bar.pos, status)

        yield report
