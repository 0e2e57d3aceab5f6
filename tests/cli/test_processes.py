"""Small programs, watched by a process of their own, which is sent real signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from scripts.children import child
from tests.cli.command import ROOT

KEEPER = """
import os, sys
from hookviz.cli import processes
processes._PAUSE, processes._PATIENCE = float(sys.argv[1]), float(sys.argv[2])
programs = zip("AB", sys.argv[3:])
sys.exit(processes.keep_up([
    processes.Process(name, [sys.executable, "-S", "-c", program], dict(os.environ))
    for name, program in programs
]))
"""
BUSY = """
import os, signal, sys, time
def finish(*_):
    time.sleep(0.3)
    os.write(1, b"finished\\n")
    sys.exit()
signal.signal(signal.SIGTERM, finish)
os.write(1, b"up %d\\n" % os.getpid())  # in one piece: two write into one file
while True:
    time.sleep(0.1)
"""
"""Says its process, and ends a little after it was asked to."""

STUBBORN = BUSY.replace("finish)", "signal.SIG_IGN)")
KILLED = "import os; os.kill(os.getpid(), 9)"


@contextmanager
def keeping(
    output: Path, *programs: str, pause: float = 0.0, patience: float = 30.0
) -> Iterator["subprocess.Popen[str]"]:
    with (
        output.open("w") as stream,
        child(
            [sys.executable, "-c", KEEPER, str(pause), str(patience), *programs],
            cwd=ROOT,
            stdout=stream,
            stderr=subprocess.STDOUT,
        ) as keeper,
    ):
        yield keeper


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pids(output: Path) -> list[int]:
    lines = output.read_text().split("\n")
    return [int(line.split()[1]) for line in lines if line.startswith("up ")]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells children of their parent's end")
def test_all_end_with_one_that_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    command = [sys.executable, "-c", KEEPER, "0", "30", BUSY, BUSY]
    # No guard stands between here, who would end them.
    with output.open("w") as stream, subprocess.Popen(command, cwd=ROOT, stdout=stream) as keeper:
        try:
            until(lambda: len(pids(output)) == 2)
            keeper.kill()
            until(lambda: output.read_text().count("finished") == 2)
        finally:
            keeper.kill()
            for pid in pids(output):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_signal_is_passed_on_and_what_goes_on_may_end(tmp_path: Path) -> None:
    """Ctrl-C; the tests below send the signal to terminate."""
    output = tmp_path / "output"
    with keeping(output, BUSY, BUSY) as keeper:
        until(lambda: len(pids(output)) == 2)
        keeper.send_signal(signal.SIGINT)
        assert keeper.wait(60) == 0
    assert output.read_text().count("finished") == 2
    assert "hookviz:" not in output.read_text()


def test_what_is_killed_starts_again_and_the_other_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, BUSY, BUSY) as keeper:
        until(lambda: len(pids(output)) == 2)
        first, second = pids(output)
        os.kill(first, signal.SIGKILL)
        until(lambda: len(pids(output)) == 3)
        os.kill(second, 0)
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == 0
    said = [line for line in output.read_text().split("\n") if line.startswith("hookviz:")]
    assert len(said) == 1
    assert f"(process {first}) was ended by SIGKILL and is started again" in said[0]


def test_what_ends_by_itself_ends_the_others_and_its_status_counts(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, BUSY, "import time; time.sleep(1); raise SystemExit(7)") as keeper:
        assert keeper.wait(60) == 7
    text = output.read_text()
    assert "started again" not in text
    assert text.count("finished") == text.count("up ")


def test_what_is_killed_again_and_again_is_given_up(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, KILLED) as keeper:
        assert keeper.wait(60) == 1
    assert output.read_text().count("is started again") == 5
    assert output.read_text().count("once too often") == 1


def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with keeping(output, STUBBORN, patience=0.5) as keeper:
        until(lambda: len(pids(output)) == 1)
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(60) == 0
    assert "did not end and is killed" in output.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(pids(output)[0], 0)
