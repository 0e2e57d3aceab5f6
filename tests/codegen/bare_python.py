"""A process that can't import HookViz and runs scripts, one after another: torch starts once."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import os, runpy, sys, traceback
sys.modules["hookviz"] = None  # whoever imports it fails
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what scripts print goes elsewhere
for line in sys.stdin:
    folder = line.rstrip("\\n")
    os.chdir(folder)
    sys.path.insert(0, folder)
    try:
        runpy.run_path("script.py", run_name="__main__")
    except BaseException as error:
        open("error.txt", "w").write(f"{error}\\n{traceback.format_exc()}")
    sys.path.remove(folder)
    print("done", file=answers, flush=True)
"""


@contextmanager
def bare_python() -> Iterator[Callable[[Path], None]]:
    """What runs the ``script.py`` of a folder, in it; what it fails with is in ``error.txt``."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        tell, hear = process.stdin, process.stdout

        def run(folder: Path) -> None:
            print(folder, file=tell, flush=True)
            assert hear.readline() == "done\n", f"the process ended at {folder}"

        yield run


def in_ruffs_order(folder: Path) -> None:
    """Fail where ruff would write the scripts of a folder otherwise, or has something to say."""
    options = ["--isolated", "--line-length=100", str(folder)]
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "format", "--diff", *options], check=True)
    rules = ["--select=E,F,I,W,B,RET,SIM", "--ignore=E501"]
    subprocess.run([*ruff, "check", *rules, *options], check=True)
