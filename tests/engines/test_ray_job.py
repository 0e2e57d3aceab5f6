import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookviz.engines.engine import Engine, Needs
from hookviz.errors import EngineError, ImageError
from tests.engines import jobs

pytestmark = pytest.mark.rest

NODE = r"[Nn]ode [\w.-]+ \([\d.]+, [0-9a-f]{8}\)"
SHARDS = [(first, first + 1) for first in range(0, 24, 2)]


def nobody(_done: float, _left_out: int) -> None: ...


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text()[:60]
    except OSError:  # it ended before it was read, or while it was
        return False


def wait_until_gone(pids: set[int]) -> None:
    until = time.monotonic() + 20
    while any(map(is_running, pids)):
        assert time.monotonic() < until, "workers are left"
        time.sleep(0.05)


def test_results_come_in_order_from_several_processes_that_are_gone_then(
    ray_engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of shards that are asked for as they are needed."""
    asked = 0

    def shards() -> Iterator[tuple[int, ...]]:
        nonlocal asked
        for number in range(1000):
            asked += 1
            yield (number,)

    with contextlib.closing(ray_engine(jobs.Pids(folder=tmp_path), shards(), nobody)) as results:
        found = [next(results) for _ in range(6)]
    assert [doubled for _, doubled in found] == [0, 2, 4, 6, 8, 10]
    assert asked < 30
    pids = {int(each.name) for each in tmp_path.iterdir()}
    assert len(pids) == 2
    assert {pid for pid, _ in found} <= pids - {os.getpid()}
    wait_until_gone(pids)
    [said] = [each.getMessage() for each in caplog.records if each.name.startswith("hookviz.")]
    assert said.startswith("This Ray cluster has its workers (2) on this machine alone")
    assert "engine='local'" in said


def test_a_killed_worker_loses_and_doubles_nothing(ray_engine: Engine, tmp_path: Path) -> None:
    reported: list[tuple[float, int]] = []

    def report(done: float, left_out: int) -> None:
        reported.append((done, left_out))

    work = jobs.KilledOnce(jobs.Doubling(), tmp_path / "killed", shard=4)
    found = list(ray_engine(work, enumerate(SHARDS), report))
    assert work.mark.exists()
    assert found == [[2 * number for number in shard] for shard in SHARDS]
    shares = [done for done, _ in reported]
    assert shares == sorted(set(shares))
    assert (shares[-1], reported[-1][1]) == (24, 0)


def test_images_that_kill_their_worker_each_time_are_named(one_worker: Engine) -> None:
    with pytest.raises(EngineError, match=rf"2\.jpg … 3\.jpg was lost 3 times, last on {NODE}"):
        list(one_worker(jobs.Deadly(), SHARDS, nobody))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (jobs.Unloadable(fault=jobs.no_module), "can't be loaded there: .*No module named 'nets'"),
        (jobs.Unloadable(fault=MemoryError), "not enough memory for the model"),
        (jobs.Unloadable(fault=jobs.end_process), r"can't bring up a worker .* 3 times"),
        (jobs.Failing(error=MemoryError), r"can't do the 2 images 2\.jpg … 3\.jpg: it ran out of"),
    ],
)
def test_what_a_node_can_not_do_is_told_with_its_name(
    one_worker: Engine, work: Any, message: str
) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        list(one_worker(work, SHARDS, nobody))
    assert re.match(NODE, str(caught.value))


def test_a_folder_that_a_node_does_not_see_is_told(one_worker: Engine, tmp_path: Path) -> None:
    (tmp_path / "1.png").touch()
    handle = os.open(tmp_path, os.O_RDONLY)
    os.dup2(handle, 900)
    try:
        seen_here = "/proc/self/fd/900/1.png"  # by this process and by no other
        assert Path(seen_here).exists()
        work = jobs.Doubling(Needs((str(tmp_path / "1.png"), seen_here)))
        with pytest.raises(EngineError, match=rf"{NODE} .*'{seen_here}' is not to be seen there"):
            list(one_worker(work, SHARDS, nobody))
    finally:
        os.close(900)
        os.close(handle)


def test_errors_of_the_work_are_as_they_are_in_this_process(one_worker: Engine) -> None:
    with pytest.raises(ImageError, match=r"^the number 2 is refused$"):
        list(one_worker(jobs.Failing(), SHARDS, nobody))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: the number 2"):
        list(one_worker(jobs.Failing(error=ZeroDivisionError), SHARDS, nobody))


def test_what_can_not_be_packed_is_told(one_worker: Engine) -> None:
    work = jobs.Doubling()
    work.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match=r"can't be sent .*lock.*engine='local' takes it"):
        list(one_worker(work, SHARDS, nobody))


def test_it_is_told_how_far_a_shard_is_and_stopping_leaves_no_worker(
    one_worker: Engine, tmp_path: Path
) -> None:
    reported: list[tuple[float, int]] = []

    def stop(done: float, left_out: int) -> None:
        reported.append((done, left_out))
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(one_worker(jobs.Slow(mark=tmp_path / "pid"), [tuple(range(20))], stop))
    assert reported[0][0] < 20
    assert reported[-1][0] == reported[-1][1] + 1
    wait_until_gone({int((tmp_path / "pid").read_text())})


def test_a_cluster_of_other_machines_is_not_said_to_be_slower(
    one_worker: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
    assert len(list(one_worker(jobs.Doubling(), SHARDS, nobody))) == len(SHARDS)
    assert not [each for each in caplog.records if each.name.startswith("hookviz.")]
