import sys
import urllib.request

from click.testing import CliRunner

from hookviz import __version__
from hookviz.cli import main
from scripts.servers import serve


def test_version_and_help() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"hookviz, version {__version__}\n"
    assert "run" in CliRunner().invoke(main, ["--help"]).output


def test_run_serves_the_app() -> None:
    command = [sys.executable, "-m", "hookviz", "run", "--port", "PORT", "--address", "127.0.0.1"]
    with serve(command=command) as address, urllib.request.urlopen(address, timeout=5) as page:
        assert page.status == 200
        assert b"Streamlit" in page.read()
