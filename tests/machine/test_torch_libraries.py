"""Tests for loading torch's libraries beside the interpreter, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOAD = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from hookviz.machine import torch_libraries
torch_libraries.load_beside()
for thread in threading.enumerate():
    if thread.name == "torch-libraries":
        thread.join()
"""


def run(code: str, *options: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, *options, "-W", "ignore", "-c", LOAD + code, str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not ended.stderr, ended.stderr
    return ended.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_they_are_there_before_torch_is_and_torch_computes_with_them() -> None:
    said = run("""
maps = open("/proc/self/maps").read()
print("libtorch_cpu.so" in maps, "torch" in sys.modules)
import torch
print(float(torch.ones(3).sum()), open("/proc/self/maps").read().count("libtorch_cpu.so") > 0)
kept = {line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line}
print(len(kept))
""")
    assert said == ["True", "False", "3.0", "True", "1"]


def test_where_torch_is_not_installed_nothing_happens() -> None:
    said = run(
        """
print("torch" in open("/proc/self/maps").read() if sys.platform == "linux" else False)
""",
        "-I",
        "-S",
    )
    assert said == ["False"]
