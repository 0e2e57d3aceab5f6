import ctypes
import gc
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookviz.capturing.cache import Budget
from hookviz.machine import memory
from hookviz.machine.memory import (
    MEGABYTE,
    Memory,
    cores,
    machine_bytes,
    memory_group,
    own_memory,
    processors,
    resident,
)

linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux tells")  # noqa: PTH110
_PROGRAM = """
import ctypes, json, resource, sys, threading
from hookviz.machine import memory

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
kept = memory.keep_freed_memory(512 << 20) if sys.argv[1] == "keep" else False
for _ in range(2):  # the second finds what the first has freed
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
held = memory.resident()
memory.return_to_system()
print(json.dumps([kept, told[1], held - memory.resident()]))
"""


def test_the_least_of_what_is_known_counts() -> None:
    machine = machine_bytes()
    assert machine is not None
    assert own_memory().limit <= machine
    assert own_memory(100).limit == 100 * MEGABYTE
    assert own_memory(1_000_000_000).limit == own_memory().limit


def test_processes_share_what_the_machine_and_the_group_have() -> None:
    assert own_memory(processes=4).limit == own_memory().limit // 4
    assert own_memory(100, 4).limit == 100 * MEGABYTE  # a number that was given is of each


@linux
def test_what_is_taken_is_seen() -> None:
    gc.collect()  # so that nothing goes meanwhile
    before = resident()
    with mmap.mmap(-1, 80 * MEGABYTE) as taken:  # new pages: an array may get old ones again
        for page in range(0, len(taken), mmap.PAGESIZE):
            taken[page] = 1
        assert resident() - before > 60 * MEGABYTE
    assert own_memory(50).used() > 50 * MEGABYTE
    assert own_memory(50).free() < 0


def test_the_reserve_is_an_eighth_and_no_more_than_half_a_gigabyte() -> None:
    assert Memory(800, resident).reserve == 100
    assert Memory(1 << 40, resident).reserve == 512 * MEGABYTE


def test_where_there_is_room_nothing_goes() -> None:
    budget = Budget(1000)
    cache = budget.cache(1000)
    cache.put("a", 1, 50)
    assert Memory(800, lambda: 700).make_room(budget.give_back, 100)
    assert budget.used == 50


def test_the_oldest_go_until_as_much_is_free() -> None:
    budget = Budget(1000 * MEGABYTE)
    cache = budget.cache(1000 * MEGABYTE)
    for key in range(10):
        cache.put(key, key, 50 * MEGABYTE)
    # 0 free, 100 MB wanted
    here = Memory(800 * MEGABYTE, lambda: 300 * MEGABYTE + budget.used)
    assert here.make_room(budget.give_back, here.reserve)
    assert [key for key in range(10) if cache.get(key) is None] == [0, 1]


def test_what_does_not_help_is_said() -> None:
    budget = Budget(1000)
    cache = budget.cache(1000)
    cache.put("a", 1, 50)
    assert not Memory(800, lambda: 790).make_room(budget.give_back, 100)
    assert budget.used == 0


@linux
def test_bytes_that_are_given_back_really_come_back() -> None:
    """In a process of its own: what is kept is dropped, and the system has it again."""
    program = """
import numpy as np
from hookviz.machine import memory
from hookviz.capturing.cache import Budget
budget = Budget(1 << 40)
cache = budget.cache(1 << 40)
size = 16 * 1024  # small blocks, which the allocator keeps for itself
for key in range(8000):
    cache.put(key, np.ones(size, np.uint8), size)
limit = int(memory.resident() * 1.02)
here = memory.Memory(limit, memory.resident)
before = memory.resident()
assert here.make_room(budget.give_back, here.reserve), (here.free(), here.reserve)
assert budget.used > 0, "not all had to go"
assert before - memory.resident() > here.reserve // 2
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@linux
def test_what_lies_free_goes_back_before_anything_kept() -> None:
    program = """
import numpy as np
from hookviz.machine import memory
assert memory.keep_freed_memory(1 << 30)
np.ones(300 << 20, np.uint8)
here = memory.Memory(memory.resident(), memory.resident)
assert here.make_room(lambda _: 1 / 0, here.reserve)
"""
    environment = {name: text for name, text in os.environ.items() if name[:7] != "MALLOC_"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env=environment)


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
    assert memory.MEGABYTE == 1 << 20


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


def test_version_2_in_a_container_sees_its_own_group_at_the_top(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "0::/",
            "memory.max": "4294967296",
            "memory.current": "1000000",
            "memory.stat": "anon 7\ninactive_file 400000\nactive_file 5",
            "cpu.max": "150000 100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (4294967296, 600000)
    assert processors(root, root / "listing") == 1.5


def test_the_tightest_group_counts_whichever_is_above(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "0::/class/app",
            "class/memory.max": "500",
            "class/memory.current": "90",
            "class/memory.stat": "inactive_file 100",
            "class/app/memory.max": "900",
            "class/cpu.max": "max 100000",
            "class/app/cpu.max": "400000 100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (500, 0)
    assert processors(root, root / "listing") == 4


def test_version_1(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1",
            "memory/memory.limit_in_bytes": "2048",
            "memory/memory.usage_in_bytes": "1024",
            "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 24",
            "cpu/cpu.cfs_quota_us": "50000",
            "cpu/cpu.cfs_period_us": "100000",
        },
    )
    group = memory_group(root, root / "listing")
    assert group is not None
    assert (group.limit, group.used()) == (2048, 1000)
    assert processors(root, root / "listing") == 0.5


def test_no_bound_is_none(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "listing": "4:memory:/\n3:cpu:/\n0::/",
            "memory.max": "max",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu.max": "max 100000",
            "cpu/cpu.cfs_quota_us": "-1",
        },
    )
    assert memory_group(root, root / "listing") is None
    assert processors(root, root / "listing") is None
    assert memory_group(tmp_path / "none", tmp_path / "none") is None


def test_a_path_that_leaves_the_mount_is_not_followed(tmp_path: Path) -> None:
    root = made(tmp_path / "top", {"listing": "0::/../../other"})
    made(tmp_path, {"other/memory.max": "5", "memory.max": "6"})
    assert memory_group(root, root / "listing") is None


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
    assert not memory.keep_freed_memory(1 << 20)
