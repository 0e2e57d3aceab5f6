"""Besiege a server of 4 GB: ten visitors who mean harm, beside thirty pupils who explore.

    python -m scripts.siege
    python -m scripts.siege --minutes 1 --pupils 10

The pupils are alone first, then beside the hostile ones, each for the same time. It is borne where
the server was never started anew, nothing failed for a pupil, 95 of 100 of their clicks came in at
most twice the time that they took alone, and its memory comes back. Linux, with a right to make a
control group of memory.
"""

import argparse
import asyncio
import functools
import itertools
import os
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path

import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import WebSocketException

from scripts.class_client import knock
from scripts.explorer_client import ExplorerClient, RefusedError
from scripts.load import Visit, visit
from scripts.servers import Server, serve
from scripts.visitor import arrive
from tests import hostile_pictures
from tests.hostile_checkpoints import checkpoints

_GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")  # of version 1 and 2
_LIMIT = 4 * 2**30
_LARGE = ("RegNet Y 32GF", "VGG-19", "Wide ResNet-101-2", "EfficientNet V2 L")
_pictures = functools.cache(hostile_pictures.pictures)
_TROUBLES = (
    *(OSError, LookupError, EOFError, RefusedError, TimeoutError),
    *(requests.RequestException, WebSocketException),
)


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """Make a control group of so many bytes for the block, without swap.

    Raises:
        OSError: the system has none, or does not let this process make one.
    """
    base = next(each for each in _GROUPS if each.is_dir())
    group = base / f"hookviz-siege-{os.getpid()}"
    group.mkdir()
    name = "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
    try:
        (group / name).write_text(str(limit))
        yield group
    finally:
        for _ in range(50):  # its processes are ending
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.2)


def kills(group: Path) -> int:
    """Return how many processes of a group the kernel has ended for lack of memory."""
    name = "memory.oom_control" if (group / "memory.oom_control").exists() else "memory.events"
    words = (group / name).read_text().split()
    return int(words[words.index("oom_kill") + 1])


async def send_pictures(address: str, choice: random.Random) -> None:
    """Upload pictures that take gigabytes or minutes."""
    async with arrive(address, {"model": "ShapesNet"}) as tab:
        await tab.run()
        pictures = [*_pictures().values()]
        await tab.upload(choice.choice(pictures))
        for _ in range(5):
            await tab.give("An image file", "mine.png", choice.choice(pictures))


async def send_checkpoints(address: str, choice: random.Random) -> None:
    """Upload checkpoints that take all memory, or end the process."""
    async with arrive(address, {"model": "ShapesNet", "weights": "yours"}) as tab:
        await tab.run()
        for _ in range(5):
            await tab.give("Weights for ShapesNet", "a.pth", choice.choice(checkpoints()))


async def look_at_the_largest(address: str, choice: random.Random) -> None:
    """Look at the largest networks with the largest input."""
    await _look(address, choice.choice(_LARGE))


async def _look(address: str, model: str) -> None:
    query = {"model": model, "weights": "random", "size": "1024"}
    async with arrive(address, query) as tab:
        await tab.run()
        explorer = ExplorerClient(tab)
        try:
            await explorer.show()
        finally:
            explorer.close()


async def _fill(address: str) -> None:
    """Look at each of the largest networks once, so that the pool keeps what it may keep."""
    for model in _LARGE:
        with suppress(*_TROUBLES):
            await _look(address, model)


async def keep_lines_silent(address: str, _choice: random.Random) -> None:
    """Open lines to a class that say nothing, as many as there are."""
    async with asyncio.TaskGroup() as group:
        for _ in range(40):
            group.create_task(_silent(address))


async def _silent(address: str) -> None:
    with suppress(*_TROUBLES):
        async with knock(address) as seat:
            await asyncio.sleep(20)
            await seat.end()


async def guess_codes(address: str, choice: random.Random) -> None:
    """Try codes of classes as fast as the server answers."""
    for _ in range(200):
        with suppress(*_TROUBLES):
            async with knock(address) as seat:
                await seat.say(code="".join(choice.choices("abcdefghjk", k=6)), token="x" * 20)
                await seat.end()


async def log_at_length(address: str, _choice: random.Random) -> None:
    """Send names of fragments of a megabyte, which a server may log."""
    async with arrive(address, {"model": "ShapesNet"}) as tab:
        await tab.run()
        for _ in range(20):
            message = BackMsg()
            message.rerun_script.fragment_id = "\x1b[2J" * 250_000
            await tab.send(message)
            await asyncio.sleep(0.2)


async def upload_slowly(address: str, _choice: random.Random) -> None:
    """Begin uploads that never end."""
    host, port = address.removeprefix("http://").split(":")
    head = f"PUT /_stcore/upload_file/a/b HTTP/1.1\r\nHost: {host}:{port}\r\n"
    lines = []
    for _ in range(30):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{head}Content-Length: 40000000\r\n\r\n".encode())
        lines.append((reader, writer))
    try:
        for _ in range(30):
            await asyncio.sleep(1)
            for _, writer in lines:
                if not writer.is_closing():
                    writer.write(b"x")
    finally:
        for _, writer in lines:
            writer.close()


_HARMS: Sequence[Callable[[str, random.Random], Awaitable[None]]] = (
    *(send_pictures, send_pictures, send_checkpoints, send_checkpoints),
    *(look_at_the_largest, look_at_the_largest, keep_lines_silent),
    *(guess_codes, log_at_length, upload_slowly),
)


async def _harm(
    address: str, number: int, until: float, harm: Callable[[str, random.Random], Awaitable[None]]
) -> int:
    """Do harm again and again; return how often it came to an end, whatever end."""
    choice, times = random.Random(number), 0  # noqa: S311 - nobody's secret
    while time.monotonic() < until:
        with suppress(*_TROUBLES):
            await asyncio.wait_for(harm(address, choice), max(1.0, until - time.monotonic()))
        times += 1
        await asyncio.sleep(0.5)
    return times


async def _pupil(address: str, seed: int, until: float) -> list[Visit]:
    visits: list[Visit] = []
    for turn in itertools.count():
        if time.monotonic() > until:
            return visits
        visits.append(await visit(address, "ShapesNet", 1000 * seed + turn))
    return visits


async def _pupils(address: str, pupils: int, until: float) -> list[Visit]:
    async with asyncio.TaskGroup() as group:
        coming = [group.create_task(_pupil(address, seed, until)) for seed in range(pupils)]
    return [seen for each in coming for seen in each.result()]


async def _hostile(address: str, hostile: int, until: float) -> int:
    async with asyncio.TaskGroup() as group:
        harming = [
            group.create_task(_harm(address, number, until, harm))
            for number, harm in zip(range(hostile), itertools.cycle(_HARMS), strict=False)
        ]
    return sum(each.result() for each in harming)


def _harm_from_afar(address: str, hostile: int, until: float) -> int:
    """Harm from a process of its own that yields to others: what it works is no server's work."""
    os.nice(10)
    return asyncio.run(_hostile(address, hostile, until))


def _crowd(address: str, pupils: int, seconds: float, hostile: int) -> tuple[list[Visit], int]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as afar:
        until = time.monotonic() + seconds  # one clock for all processes of a system
        harming = afar.submit(_harm_from_afar, str(address), hostile, until)
        return asyncio.run(_pupils(address, pupils, until)), harming.result()


def _told(name: str, visits: Sequence[Visit]) -> tuple[float, int]:
    """Print how the pupils fared; return the 95th percentile and how much failed."""
    seconds = sorted(click.seconds for seen in visits for click in seen.clicks)
    failures = [text for seen in visits for text in seen.failures]
    late = seconds[round(0.95 * len(seconds)) - 1]
    print(
        f"| {name} | {len(seconds)} | {len(failures)} | {statistics.median(seconds):.3f} "
        f"| {late:.3f} |",
        flush=True,
    )
    for text in failures[:10]:
        print(f"  {text}", file=sys.stderr)
    return late, len(failures)


def besiege(pupils: int, minutes: float, hostile: int) -> bool:
    """Print the table, and return whether the siege was borne."""
    with memory_group(_LIMIT) as group:
        enter = f"echo $$ > {group}/cgroup.procs && exec "
        run = f"{sys.executable} -m streamlit run app.py --server.port PORT"
        run += " --server.address 127.0.0.1"
        with serve(command=("sh", "-c", enter + run)) as server:
            return _besieged(server, group, pupils, 60 * minutes, hostile)


def _besieged(server: Server, group: Path, pupils: int, seconds: float, hostile: int) -> bool:
    number = server.pid()
    asyncio.run(_fill(server))
    print("| | clicks | failures | p50 s | p95 s |\n|---|---:|---:|---:|---:|")
    alone, _ = _crowd(server, pupils, seconds, 0)
    before, _ = _told("alone", alone)
    memory = server.megabytes()
    beside, harms = _crowd(server, pupils, seconds, hostile)
    late, failures = _told("besieged", beside)
    deadline = time.monotonic() + 150  # Streamlit keeps a lost session for two minutes
    while time.monotonic() < deadline and server.megabytes() > 1.1 * memory:
        time.sleep(5)
    left, killed = server.megabytes(), kills(group)
    print(f"harms {harms}, killed by the kernel {killed}, MB {memory:.0f} -> {left:.0f}")
    print(f"p95 {late / before:.2f} x alone, errors in the log {len(server.errors())}")
    return server.pid() == number and not failures and late <= 2 * before and left <= 1.1 * memory


def main() -> None:
    """Besiege a server."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pupils", type=int, default=30)
    parser.add_argument("--hostile", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=5.0)
    asked = parser.parse_args()
    sys.exit(not besiege(asked.pupils, asked.minutes, asked.hostile))


if __name__ == "__main__":
    main()
