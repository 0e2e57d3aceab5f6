"""Every job on workers of a real cluster beside the same in this process."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.engines.engine import Engine, ReportImages
from tests.atlas.folders import save_folder
from tests.engines.jobs import KilledOnce
from tests.networks import Tiny, as_model, random_input, seeded

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.usefixtures("one_thread")


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
        assert cap.predictions(2) == own.predictions(2)


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


@pytest.mark.sweep("by day a job is stopped: tests/engines/test_ray_job.py")
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
