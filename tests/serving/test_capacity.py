import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from hookviz.errors import HookVizError, ModelError
from hookviz.machine.memory import is_short_of_memory
from hookviz.serving import capacity
from hookviz.serving.capacity import plan_runs
from scripts.explorer_client import exploring
from scripts.servers import serve
from scripts.visitor import arrive
from tests.loops import in_a_loop_of_its_own

if sys.platform != "win32":
    import resource


@pytest.mark.parametrize(
    ("runs", "threads", "cores", "gigabytes", "expected"),
    [
        (0, 0, 0, 4, (4, 1, 1)),
        (0, 0, 1, 4, (4, 1, 1)),
        (0, 0, 2, 4, (4, 1, 1)),
        (0, 0, 2, 2, (2, 1, 1)),
        (0, 0, 4, 4, (2, 2, 1)),
        (0, 0, 8, 16, (2, 4, 1)),
        (0, 0, 32, 64, (8, 4, 7)),
        (0, 0, 32, 3, (3, 10, 2)),
        (0, 0, 4, 0.5, (1, 4, 1)),
        (5, 0, 4, 0.5, (5, 1, 2)),
        (0, 3, 4, 8, (2, 3, 1)),
    ],
)
def test_runs_times_threads_fill_the_cores(
    runs: int, threads: int, cores: int, gigabytes: float, expected: tuple[int, int, int]
) -> None:
    assert plan_runs(runs, threads, cores, int(gigabytes * (1 << 30))) == expected


bounds_memory = pytest.mark.skipif(sys.platform != "linux", reason="it bounds the address space")


def address_space(pid: int | str = "self") -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


@bounds_memory
@pytest.mark.by_day
def test_what_can_not_be_had_is_told_in_words_and_what_is_kept_gives_way() -> None:
    program = """
import resource
import numpy as np, torch
import hookviz
from hookviz.capturing.cache import ByteCache
from hookviz.serving import capacity
from tests.serving.test_capacity import address_space

model = hookviz.load_model("resnet50", "random")
image = np.zeros((600, 600, 3), np.uint8)
cache = capacity.activation_budget().cache(1 << 30)
torch.set_num_threads(1)
hookviz.capture(model, torch.zeros(1, 3, 224, 224))
resource.setrlimit(resource.RLIMIT_AS, (address_space() + (90 << 20), -1))
cache.put("kept", torch.ones(30 << 20, dtype=torch.uint8), 30 << 20)

for work in (
    lambda: torch.ones(1 << 30),
    lambda: np.ones(1 << 30),
    lambda: bytearray(1 << 40),
    lambda: hookviz.capture(model, torch.zeros(1, 3, 1024, 1024)),
):
    try:
        with capacity.translate_oom("Making it"):
            work()
    except hookviz.HookVizError as error:
        print(error)
assert capacity.activation_budget().used == 0

# Once what was kept is gone there is room, and the second try goes well.
cache.put("kept", torch.ones(60 << 20, dtype=torch.uint8), 60 << 20)
made = capacity.with_retry("Making it", lambda: torch.ones(55 << 20, dtype=torch.uint8))
assert made.all() and capacity.activation_budget().used == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=120,
        stdout=subprocess.PIPE,
        text=True,
        # Freed memory goes back at once: what the capture left in the heap would be room for more.
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},
    )
    *made, captured = done.stdout.splitlines()
    assert len(made) == 3
    assert all(line.startswith("Making it takes more memory than this server") for line in made)
    assert captured == (
        "ResNet-50 needs more memory for 3×1024×1024 numbers and what it makes of them than there "
        "is left. A smaller input or model takes less."
    )


def test_other_errors_pass_as_they_are() -> None:
    for error in (ValueError("no"), RuntimeError("mat1 and mat2 shapes"), ModelError("x")):
        assert not is_short_of_memory(error)
        with pytest.raises(type(error)), capacity.translate_oom("It"):
            raise error
        with pytest.raises(type(error)):
            capacity.with_retry("It", partial(raised, error))


def raised(error: Exception) -> None:
    raise error


def test_an_error_in_words_stays_as_it_is_where_memory_is_its_cause() -> None:
    with pytest.raises(ModelError, match="as it is"), capacity.translate_oom("It"):
        raise ModelError("as it is") from MemoryError()
    with (
        pytest.raises(HookVizError, match="It takes more memory"),
        capacity.translate_oom("It"),
    ):
        raise MemoryError


@bounds_memory
@pytest.mark.sweep("by day in one process: the tests above")
def test_a_server_at_its_limit_says_so_and_goes_on_serving() -> None:
    async def visits(address: str, pid: int) -> list[str]:
        small, large = {"model": "ShapesNet"}, {"model": "VGG-16", "weights": "random"}
        async with arrive(address, small) as other, arrive(address, large) as visitor:
            await other.run()
            limit = address_space(pid) + (300 << 20)  # VGG-16 takes 553 MB
            resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
            await visitor.run()
            async with exploring(other) as explorer:
                for layer in ("stage1.first.conv", "stage2.first.conv"):
                    await explorer.choose_layer(layer)
                    assert explorer.tiles
            assert other.problems == []
            return visitor.problems

    with serve() as server:
        problems = in_a_loop_of_its_own(asyncio.wait_for(visits(server, server.pid()), 120))
        assert server.errors() == []
    (problem,) = problems
    assert problem.replace("\\", "").startswith(
        "Loading VGG-16 takes more memory than this server has left"
    )
