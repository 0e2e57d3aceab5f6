"""Downloads of weights with a bar in the terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hookviz.models import catalog
from hookviz.models.fetching import downloads
from hookviz.types import ModelSpec


@contextmanager
def bar(spec: ModelSpec) -> Iterator[downloads.Report]:
    """What to tell how far the download of a model's weights is, while a bar shows it.

    The bar is on standard error, and only where that is a terminal.
    """
    shown: Any
    with click.progressbar(
        length=spec.download_bytes,
        label=spec.title,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=lambda status: status.text if status else "",
    ) as shown:

        def report(status: downloads.TransferStatus) -> None:
            shown.length = status.total or shown.length
            shown.update(status.received - shown.pos, status)

        yield report


def fetch(spec: ModelSpec, mirror: str = "") -> Path:
    """Where the pretrained weights of a catalog model are, once they have been downloaded.

    Args:
        spec: of a model whose weights don't ship with HookViz.
        mirror: an address that serves the same file names, in place of ``HOOKVIZ_WEIGHTS_URL``.

    Raises:
        WeightsError: they can't be downloaded, or what came is something else.
    """
    path = catalog.weights_path(spec.name)
    url = f"{mirror.rstrip('/')}/{path.name}" if mirror else catalog.weights_url(spec.name)
    with bar(spec) as report:
        return downloads.fetch(url, path, report)
