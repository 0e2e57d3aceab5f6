"""Tests for the allocator: each in a process of its own, since its bounds are the process's."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

from hookviz.machine import allocator

_PROGRAM = """
import ctypes, json, resource, sys, threading
from hookviz.machine import allocator, memory

def faults():
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(8):
        blocks = [b"x" * (size << 20) for size in (40, 2, 40)]
        del blocks
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

def work():
    b"x" * (90 << 20)
    told.append(faults())

told = []
kept = allocator.keep_freed_memory(512 << 20) if sys.argv[1] == "keep" else False
for _ in range(2):  # the second finds what the first has freed
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
held = memory.resident()
memory.return_to_system()
print(json.dumps([kept, told[1], held - memory.resident()]))
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="glibc's bounds")


def told(how: str, **environment: str) -> tuple[bool, int, int]:
    """Return whether memory is kept, the page faults of a thread, and the bytes that go back."""
    mine = {name: text for name, text in os.environ.items() if not name.startswith("MALLOC_")}
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how],
        env=mine | environment,
        capture_output=True,
        check=True,
    )
    kept, faults, given_back = json.loads(run.stdout)
    return kept, faults, given_back


@linux
def test_a_block_that_is_asked_for_again_is_there_in_any_thread() -> None:
    usual = told("leave")
    kept, faults, given_back = told("keep")
    assert kept
    assert usual[1] > 20_000  # each time fresh pages
    assert faults < usual[1] / 20
    assert given_back > 50 << 20  # and all of it goes where it is asked for


@linux
@pytest.mark.parametrize(
    "name", ["MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"]
)
def test_whoever_chose_bounds_keeps_them(name: str) -> None:
    text = "glibc.malloc.arena_max=8" if name == "GLIBC_TUNABLES" else "8"
    assert not told("keep", **{name: text})[0]


def test_another_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """A C library whose `mallopt` counts otherwise."""

        def mallopt(self, *_: int) -> int:
            pytest.fail("must not be called")

    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Other())
    assert not allocator.keep_freed_memory(1 << 20)
