"""Children end with their starter: when its block ends, fails, or it is killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

import pytest

from scripts.children import child
from tests.cli.command import ROOT

FAMILY = """
import subprocess, sys
grandchild = "print('up', flush=True); import time; time.sleep(200)"
subprocess.run([sys.executable, "-c", grandchild])
"""
"""A child with a child of its own; both hold its standard output."""

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(200)
"""

STARTER = f"""
import sys, time
from scripts.children import child
with child([sys.executable, "-c", {FAMILY!r}]):
    time.sleep(200)
"""


@pytest.fixture
def deaf_to_ctrl_c() -> Iterator[None]:
    """What a shell does to background jobs, and ``nohup`` to its command."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_output_and_status_are_the_childs() -> None:
    program = "import sys; print('said'); print('warned', file=sys.stderr); sys.exit(7)"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with child([sys.executable, "-c", program], **pipes) as running:
        assert running.communicate(timeout=60) == ("said\n", "warned\n")
    assert running.returncode == 7


@pytest.mark.usefixtures("deaf_to_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_it_where_the_starter_ignores_them(number: signal.Signals) -> None:
    command = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(200)"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with child(command, **pipes) as running:
        assert running.stdout.readline() == "up\n"
        running.send_signal(number)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == -number
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)


@pytest.mark.parametrize("program", [FAMILY, STUBBORN], ids=["family", "stubborn"])
def test_a_block_that_fails_leaves_nothing(program: str) -> None:
    def fails(output: IO[str]) -> None:
        with child([sys.executable, "-c", program], patience=0.2, stdout=output):
            output.close()
            assert cat.stdout is not None
            assert cat.stdout.readline() == "up\n"
            raise ZeroDivisionError

    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, text=True) as cat:
        assert cat.stdin is not None
        with pytest.raises(ZeroDivisionError):
            fails(cat.stdin)
    assert cat.returncode == 0, "it read to the end, so nobody else held its input"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_starter_that_is_killed_leaves_nothing(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        starter.send_signal(number)
        assert starter.stdout.read() == ""  # its end: nobody holds it any more
    assert starter.returncode == -number
