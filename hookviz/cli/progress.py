"""A bar on the terminal that tells how far something is."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from hookviz.types import Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """What to tell how far something is, while a bar shows it with the time that is left.

    The bar is on standard error, and only where that is a terminal.
    """
    with click.progressbar(
        length=1000, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield lambda share: bar.update(int(1000 * share) - bar.pos)
