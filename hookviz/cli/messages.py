"""Say on the command line what went wrong."""

import click

from hookviz.wording import one_line

MISTAKE = 2
"""Exit status for what a person got wrong."""


def in_words(error: Exception) -> str:
    """Return an error's text, without the numbers that the operating system puts before it."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{str(error.filename)!r}: " if error.filename is not None else ""
        return f"{where}{error.strerror}."
    return str(error) or type(error).__name__


def complain(text: str) -> None:
    """Say what went wrong in one line on standard error."""
    click.echo(f"hookviz: {one_line(' '.join(text.split()))}", err=True)
