"""Edited lines run apart: what comes back, what is said of faults, and that all of it ends."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hookviz.lessons import own_code
from hookviz.lessons.own_code import OwnResult, OwnRun

SET_UP = "import torch\nvalue = 3\n"
PLAIN = "value = 3\n"
"""Without torch, which takes seconds to come."""


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="found by /proc")


def nothing(_folder: Path) -> None:
    """No files."""


def result(lines: str, set_up: str = PLAIN, **limits: float) -> OwnResult:
    run = OwnRun(set_up, lines, nothing, **limits)  # type: ignore[arg-type]
    assert run.wait(120)
    assert run.result is not None
    return run.result


def test_what_lines_print_compute_and_draw_comes_back() -> None:
    lines = (
        'print("on", value)\nmean, word, hidden = value / 2, "yes", [1]\n'
        'pictures = {"a map": torch.arange(6.0).reshape(2, 3), "no map": torch.ones(3)}\n'
    )
    came = result(lines, SET_UP)
    assert came.fault == ""
    assert came.printed == ("on 3",)
    assert came.facts == {"value": 3, "mean": 1.5, "word": "yes"}
    assert list(came.pictures) == ["a map"]
    np.testing.assert_array_equal(came.pictures["a map"], [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("a = 1\nprint(b)\n", "Line 2: NameError: name 'b' is not defined"),
        ("a = 1\n\ndef f(:\n", "Line 3: SyntaxError: invalid syntax"),
        ("def f():\n    return 1 / 0\n\nf()\n", "Line 2: ZeroDivisionError: division by zero"),
        ("import json\n\njson.loads('x')\n", "Line 3: JSONDecodeError: Expecting value"),
        ("assert value == 4", "Line 1: AssertionError"),
    ],
)
def test_a_fault_is_one_sentence_with_the_line_that_one_wrote(lines: str, fault: str) -> None:
    said = result(lines).fault
    assert said.startswith(fault)
    assert "Traceback" not in said
    assert "\n" not in said


def test_what_ends_a_run_is_in_words() -> None:
    failed = result("print('so far')\nraise ValueError('no')\n")
    assert (failed.printed, failed.fault) == (("so far",), "Line 2: ValueError: no")
    endless = result("print('begun')\nwhile True:\n    pass\n", seconds=0.5)
    assert endless.printed == ("begun",)
    assert endless.fault == "It was ended after 0 seconds: a loop without an end, perhaps?"
    assert 50 < len(result("while True:\n    print('x' * 70)\n", seconds=1).printed) < 200
    large = result("kept = [bytearray(10**8) for _ in range(20)]\n", megabytes=300)
    assert large.fault.startswith("There was not enough memory")
    assert result("import os\nos.abort()\n").fault == "Python itself ended, with status -6."
    set_up = "raise OSError('no file')\n"
    assert result("a = 1\n", set_up).fault == "The set-up failed: OSError: no file"
    long = result("#" * (own_code._LONGEST + 1))
    assert long.fault == "These lines are too long to be run."


def test_lines_are_stopped_and_their_process_and_folder_are_gone() -> None:
    folders: list[Path] = []
    run = OwnRun(PLAIN, "while True:\n    pass\n", folders.append)
    while not folders or not (folders[0] / "begun").exists():
        assert not run.wait(0.01)
    run.stop()
    assert run.wait(20)
    assert run.result is not None
    assert run.result.fault == "It was stopped."
    assert not folders[0].exists()
    held = [each for each in Path("/proc").glob("[0-9]*/cwd") if _is_in(each, folders[0])]
    assert held == []


def _is_in(link: Path, folder: Path) -> bool:
    try:
        return str(link.readlink()).startswith(str(folder))
    except OSError:  # of another user, or gone
        return False


def test_files_that_can_not_be_written_are_named_and_hookviz_is_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(_folder: Path) -> None:
        raise OSError("No space left on device")

    fill: Callable[[Path], None] = full
    run = OwnRun(PLAIN, "a = 1", fill)
    assert run.wait(20)
    assert run.result is not None
    assert run.result.fault == "The files could not be written: No space left on device"
    assert capsys.readouterr().err == ""
    came = result("import sys\nfound = str([n for n in sys.modules if 'hookviz' in n])\n")
    assert came.facts["found"] == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends the process alone")
@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=on_linux)])
def test_what_the_lines_started_ends_with_them(apart: bool) -> None:
    lines = (
        "import subprocess\n"
        f"child = subprocess.Popen(['sleep', '300'], start_new_session={apart})\n"
        "number = child.pid\n"
    )
    number = int(result(lines).facts["number"])
    for _ in range(100):
        if not is_running(number):
            return
        time.sleep(0.05)
    pytest.fail("it runs on")


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("left", ["", "{", "[]", '{"facts": 3}', '{"pictures": [1]}'])
def test_a_damaged_result_is_no_success(left: str) -> None:
    lines = (
        f"import os\nfile = open('result.json', 'w')\nfile.write({left!r})\nfile.close()\n"
        "os._exit(0)\n"
    )
    assert "can't be read" in result(lines).fault
