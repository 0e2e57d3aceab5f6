import gc
import mmap
import os
import subprocess
import sys

import pytest

from hookviz.capturing.cache import Budget
from hookviz.machine import memory
from hookviz.machine.memory import MEGABYTE, Memory, cores, machine_bytes, own_memory, resident

linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux tells")  # noqa: PTH110


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
    assert Memory(800, lambda: 700).make_room(budget.give_back)
    assert budget.used == 50


def test_the_oldest_go_until_the_reserve_is_free() -> None:
    budget = Budget(1000 * MEGABYTE)
    cache = budget.cache(1000 * MEGABYTE)
    for key in range(10):
        cache.put(key, key, 50 * MEGABYTE)
    # 0 free, 100 MB wanted
    here = Memory(800 * MEGABYTE, lambda: 300 * MEGABYTE + budget.used)
    assert here.make_room(budget.give_back)
    assert [key for key in range(10) if cache.get(key) is None] == [0, 1]


def test_what_does_not_help_is_said() -> None:
    budget = Budget(1000)
    cache = budget.cache(1000)
    cache.put("a", 1, 50)
    assert not Memory(800, lambda: 790).make_room(budget.give_back)
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
assert here.make_room(budget.give_back), (here.free(), here.reserve)
assert budget.used > 0, "not all had to go"
assert before - memory.resident() > here.reserve // 2
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@linux
def test_what_lies_free_goes_back_before_anything_kept() -> None:
    program = """
import numpy as np
from hookviz.machine import allocator, memory
assert allocator.keep_freed_memory(1 << 30)
np.ones(300 << 20, np.uint8)
here = memory.Memory(memory.resident(), memory.resident)
assert here.make_room(lambda _: 1 / 0)
"""
    environment = {name: text for name, text in os.environ.items() if name[:7] != "MALLOC_"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env=environment)


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
    assert memory.MEGABYTE == 1 << 20
