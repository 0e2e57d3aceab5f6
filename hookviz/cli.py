"""The ``hookviz`` command."""

import subprocess
import sys
from pathlib import Path

import click

from hookviz import __version__

_PACKAGE = Path(__file__).parent
_APP = next(
    file for file in (_PACKAGE / "ui" / "app.py", _PACKAGE.parent / "app.py") if file.is_file()
)
"""The app with its configuration beside it: in the wheel, or at the top of a checkout."""


@click.group()
@click.version_option(__version__, prog_name="hookviz")
def main() -> None:
    """See what a convolutional network computes."""


@main.command()
@click.option("--port", default=8501, show_default=True, help="Where to listen.")
@click.option("--address", default="localhost", show_default=True, help="On which interface.")
def run(port: int, address: str) -> None:
    """Start the app, by default at http://localhost:8501."""
    options = {"server.port": str(port), "server.address": address}
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = [sys.executable, "-m", "streamlit", "run", str(_APP), *flags]
    sys.exit(subprocess.call(command))  # noqa: S603 - our own command line, and no shell
