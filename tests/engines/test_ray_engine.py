"""Every job on workers of a real cluster beside the same in this process."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.engines import ray_engine
from hookviz.engines.engine import Engine, Needs, ReportImages
from hookviz.errors import EngineError, ImageError
from tests.atlas.folders import save_folder
from tests.engines import jobs
from tests.engines.jobs import KilledOnce
from tests.networks import Tiny, as_model, random_input, seeded

pytest.importorskip("ray", reason="Ray is not installed: pip install 'hookviz[ray]'")


pytestmark = pytest.mark.rest

ROOT = Path(__file__).parent.parent.parent


def test_the_cluster_that_is_there_is_used_and_left(cluster: None) -> None:
    with ray_engine.connected("ray://nobody.invalid:10001", None):
        nodes = ray_engine.slots(None, gpu=False)
    assert len(nodes) == 2
    assert len(set(nodes)) == 1
    assert ray_engine.is_alive(nodes[0])
    assert nodes[0].host == socket.gethostname()
    assert ray_engine.free_processors().endswith("of 2 processors")
    assert ray_engine.slots(1, gpu=False) == nodes[:1]


def test_a_model_on_a_gpu_asks_for_nodes_with_one(cluster: None) -> None:
    with pytest.raises(EngineError, match=r"No node .* has a GPU.*device='cpu'"):
        ray_engine.slots(None, gpu=True)


def test_workers_take_turns_among_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (ray_engine.Node(key * 56, f"host-{key}", f"10.0.0.{key}") for key in "123")
    monkeypatch.setattr(
        ray_engine, "_nodes", lambda: [(a, {"CPU": 1.0}), (b, {"CPU": 3.0}), (c, {})]
    )
    assert ray_engine.slots(None, gpu=False) == [a, b, b, b]
    assert str(a) == "node host-1 (10.0.0.1, 11111111)"


PROGRAM = """
import sys, time, hookviz
from hookviz.engines import ray_engine
import ray
for address in sys.argv[1:]:
    began = time.monotonic()
    try:
        with ray_engine.connected(address, None):
            pass
    except hookviz.EngineError as error:
        print(error)
    assert not ray.is_initialized()
    assert time.monotonic() - began < 30
"""


def test_an_address_without_a_cluster_is_told_within_seconds() -> None:
    with socket.socket() as unused:  # bound, and nobody listens
        unused.bind(("127.0.0.1", 0))
        addresses = [f"ray://127.0.0.1:{unused.getsockname()[1]}", "ray://127.0.0.1"]
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *addresses],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    for address in addresses:
        assert f"There is no Ray cluster at '{address}' that could be used" in run.stdout
    assert "Connection refused" in run.stdout
    assert "an address is ray://HOST:PORT" in run.stdout
    assert "engine='local' needs none" in run.stdout


ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.usefixtures("one_thread")

NODE = r"[Nn]ode [\w.-]+ \([\d.]+, [0-9a-f]{8}\)"
SHARDS = [(first, first + 1) for first in range(0, 24, 2)]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.sweep("by day any work there, and this work sent: tests/atlas/test_shard_work.py")
def test_an_atlas_is_the_same_to_the_byte_though_a_worker_is_killed(
    ray_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Own(Tiny):
        """A class that no worker can import."""

    for number, name in enumerate(("cats", "dogs")):
        save_folder(tmp_path / "photos" / name, 24, first=24 * number)
    (tmp_path / "photos" / "cats" / "007.png").write_bytes(b"no image")
    (tmp_path / "photos" / "dogs" / "047.png").write_bytes(
        (tmp_path / "photos" / "cats" / "001.png").read_bytes()
    )
    monkeypatch.setattr("hookviz.atlas.plan._SHARD", 8)
    model = as_model(seeded(Own))
    mark = tmp_path / "killed"
    reported: list[hookviz.AtlasProgress] = []

    def killing(work: Any, shards: Iterable[Any], report: ReportImages) -> Any:
        return ray_engine(KilledOnce(work, mark, shard=2), enumerate(shards), report)

    def make(name: str, **options: Any) -> hookviz.Atlas:
        return hookviz.make_atlas(
            model, tmp_path / "photos", tmp_path / name, top=4, batch=4, **options
        )

    local = make("local.atlas")
    ray = make("ray.atlas", engine=killing, progress=reported.append)
    assert mark.exists()
    assert dict(ray.counts) == {"images": 48, "tallied": 47, "repeated": 1, "left_out": 1}
    assert files_of(ray.path) == files_of(local.path)
    passes = [progress for progress in reported if not progress.cutting]
    assert (passes[-1].done, passes[-1].left_out) == (48, 1)


@pytest.mark.sweep("by day captures: the test below")
def test_vectors_and_alike_layers_are_the_same(
    one_worker: Engine, tmp_path: Path, tiny: hookviz.Model
) -> None:
    paths = save_folder(tmp_path, 40)
    paths[5].write_bytes(b"no image")
    images: list[Any] = [*paths, random_input(1)]
    other = as_model(nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU()))
    shares: list[float] = []
    here = hookviz.extract_features(tiny, images)
    there = hookviz.extract_features(tiny, images, engine=one_worker, progress=shares.append)
    assert there.names == here.names
    assert there.failed == here.failed
    assert list(there.failed) == ["005.png"]
    np.testing.assert_array_equal(there.vectors, here.vectors)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    alike = [
        hookviz.similarity(tiny, other, images, engine=engine) for engine in ("local", one_worker)
    ]
    np.testing.assert_array_equal(alike[0].cka, alike[1].cka)
    assert alike[0].failed == alike[1].failed
    for layer in alike[0].layers:
        first, second = (each.matches(layer) for each in alike)
        np.testing.assert_array_equal(first.correlations, second.correlations)


def test_captures_of_a_model_of_the_catalog_are_the_same(one_worker: Engine) -> None:
    model = hookviz.load_model("shapesnet")
    samples = sorted((ROOT / "assets" / "samples").glob("*.jpg"))[:5]
    each = hookviz.stream(model, [*samples, b"nothing"], "stage1", engine=one_worker)
    for path, (name, cap) in zip([*samples, None], each, strict=True):
        if path is None:
            assert isinstance(cap, hookviz.ImageError)
            continue
        own = hookviz.capture(model, path, "stage1")
        assert name == path.name
        assert cap["stage1"].values.equal(own["stage1"].values)
        # Ray gives a worker one thread, and a sum by two differs in its last bit.
        found, expected = cap.predictions(2), own.predictions(2)
        assert [label for label, _ in found] == [label for label, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected])


STOPPED = """
import sys
import hookviz
from hookviz.atlas import making, plan
from hookviz.engines.ray_engine import RayEngine
from tests.networks import Tiny, as_model, seeded

plan._SHARD, making._SECONDS = 8, 0.0
try:
    hookviz.make_atlas(
        as_model(seeded(Tiny)), sys.argv[1], sys.argv[2], top=4, batch=4,
        engine=RayEngine(workers=2),
        progress=lambda progress: print(progress.done, flush=True),
    )
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.sweep("by day a job is stopped: the tests below")
def test_ctrl_c_ends_the_cluster_too_and_the_work_can_be_gone_on_with(
    tiny: hookviz.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'hookviz[ray]'")
    save_folder(tmp_path / "photos", 400)
    mark = f"TEST_OF_CTRL_C={uuid.uuid4()}"
    name, value = mark.split("=")
    environment = {**os.environ, name: value, "OMP_NUM_THREADS": "1"}
    environment.pop("RAY_ADDRESS", None)
    run = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path / "photos"), str(tmp_path / "a.atlas")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout
    for line in run.stdout:
        # 2 workers are at most 8 shards ahead of one that is not done: a ninth has been begun here,
        # so the first has been written down.
        if int(line) > 8 * 8:
            run.send_signal(signal.SIGINT)
            break
    output, errors = run.communicate(timeout=60)
    assert (output.splitlines()[-1], run.returncode) == ("stopped", 0), errors
    wait_until_none_has(mark)
    assert (tmp_path / "a.atlas.part" / "tally.safetensors").exists()
    monkeypatch.setattr("hookviz.atlas.plan._SHARD", 8)
    reported: list[int] = []
    options: dict[str, Any] = {"top": 4, "batch": 4}
    rest = hookviz.make_atlas(
        tiny,
        tmp_path / "photos",
        tmp_path / "a.atlas",
        **options,
        progress=lambda progress: reported.append(progress.done),
    )
    assert reported[0] > 0
    whole = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "b.atlas", **options)
    assert files_of(rest.path) == files_of(whole.path)


def wait_until_none_has(mark: str) -> None:
    """Return when no process of this machine has a variable any more."""
    until = time.monotonic() + 20
    while True:
        left = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark.encode() in environment.read_bytes():
                    left.append(environment.parent.name)
        if not left:
            return
        assert time.monotonic() < until, f"processes {left} are left"
        time.sleep(0.1)


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


@pytest.mark.rest
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


@pytest.mark.rest
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


@pytest.mark.rest
def test_images_that_kill_their_worker_each_time_are_named(one_worker: Engine) -> None:
    with pytest.raises(EngineError, match=rf"2\.jpg … 3\.jpg was lost 3 times, last on {NODE}"):
        list(one_worker(jobs.Deadly(), SHARDS, nobody))


@pytest.mark.rest
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


@pytest.mark.rest
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


@pytest.mark.rest
def test_errors_of_the_work_are_as_they_are_in_this_process(one_worker: Engine) -> None:
    with pytest.raises(ImageError, match=r"^the number 2 is refused$"):
        list(one_worker(jobs.Failing(), SHARDS, nobody))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: the number 2"):
        list(one_worker(jobs.Failing(error=ZeroDivisionError), SHARDS, nobody))


@pytest.mark.rest
def test_what_can_not_be_packed_is_told(one_worker: Engine) -> None:
    work = jobs.Doubling()
    work.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match=r"can't be sent .*lock.*engine='local' takes it"):
        list(one_worker(work, SHARDS, nobody))


@pytest.mark.rest
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


@pytest.mark.rest
def test_a_cluster_of_other_machines_is_not_said_to_be_slower(
    one_worker: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
    assert len(list(one_worker(jobs.Doubling(), SHARDS, nobody))) == len(SHARDS)
    assert not [each for each in caplog.records if each.name.startswith("hookviz.")]
