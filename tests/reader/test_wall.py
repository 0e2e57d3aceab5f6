"""Whoever takes a reading process over reaches nothing, and its end is a sentence."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookviz.errors import ImageError
from hookviz.reader import wall
from hookviz.reader.wall import JOBS, Job

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")
_MEMORY = 64 * 2**20


@pytest.fixture(scope="module")
def up() -> Iterator[None]:
    for name in ("escape", "array", "crash", "hang", "memory"):
        JOBS[name] = Job(f"tests.reader.hostile_jobs:{name}", ImageError)
    wall.put_up()
    assert wall.is_up()
    yield
    wall.take_down()
    assert not wall.is_up()


def read(job: str, data: bytes = b"x", **options: int) -> wall.Answer:
    seconds = 1 if job == "hang" else 30
    return wall.read(job, data, {"name": "a.png", **options}, memory=_MEMORY, seconds=seconds)


def test_a_reader_reaches_nothing(up: None) -> None:
    facts = read("escape", other=os.getpid()).facts
    assert facts == {"reached": [], "environment": {}, "size": 1}


def test_arrays_come_back_read_only_to_many_threads(up: None) -> None:
    with ThreadPoolExecutor(8) as pool:
        for value, answer in enumerate(pool.map(lambda n: read("array", bytes([n])), range(16))):
            assert (answer.arrays["large"] == value).all()
            assert answer.arrays["small"].tolist() == [1, 2]
            assert not answer.arrays["large"].flags.writeable


@pytest.mark.parametrize(
    ("job", "said"), [("crash", "crash"), ("hang", "longer than 1"), ("memory", "64 MB")]
)
def test_the_end_of_a_reader_is_a_sentence(up: None, job: str, said: str) -> None:
    with pytest.raises(ImageError, match=rf"^'a\.png' .*{said}"):
        read(job)


@pytest.mark.parametrize(
    ("hung", "other"),
    [  # addresses and sessions of files that hang, and of one that is read meanwhile
        ([("here", "")] * 8, ("there", "")),
        ([("here", "one")] * 5, ("here", "other")),
    ],
)
def test_readers_are_left_for_other_addresses_and_sessions(
    up: None, hung: list[tuple[str, str]], other: tuple[str, str]
) -> None:
    asking = threading.local()

    def read_for(asker: tuple[str, str], job: str) -> float:
        asking.asker = asker
        begun = time.monotonic()
        with contextlib.suppress(ImageError):
            read(job)
        return time.monotonic() - begun

    wall.put_up(lambda: getattr(asking, "asker", ("", "")))
    try:
        with ThreadPoolExecutor(9) as pool:
            hanging = [pool.submit(read_for, asker, "hang") for asker in hung]
            time.sleep(0.3)
            seconds = pool.submit(read_for, other, "escape").result()
            assert not any(each.done() for each in hanging)
        assert seconds < min(each.result() for each in hanging)
    finally:
        wall.put_up(lambda: ("", ""))
        wall.take_down()
        wall.take_down()


def test_a_server_that_died_is_started_anew(up: None) -> None:
    number = wall.server_number()
    assert number is not None
    os.kill(number, signal.SIGKILL)
    assert read("array").arrays["small"].tolist() == [1, 2]
    assert wall.server_number() != number


def test_one_that_takes_long_gives_way_to_the_app(up: None) -> None:
    server = wall.server_number()
    children = Path(f"/proc/{server}/task/{server}/children")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nicenesses: set[int] = set()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, "hang")
        while not reading.done():
            for number in children.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    nicenesses.add(os.getpriority(os.PRIO_PROCESS, int(number)))
            time.sleep(0.02)
        assert reading.exception() is not None
    assert min(nicenesses) == own
    assert max(nicenesses) > own
