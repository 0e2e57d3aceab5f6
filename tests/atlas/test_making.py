import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.atlas.making import AtlasProgress
from hookviz.atlas.tally import Histograms
from hookviz.errors import HookVizError, ImageError, ModelError, SettingError
from hookviz.types import Model
from tests.atlas.folders import Folding, Mixing, by_plain_hooks, check_tops, files_of, save_folder
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded
from tests.pictures import picture

ROOT = Path(__file__).parent.parent.parent


class Branches(nn.Module):
    """A strided, a grouped, a dilated and a transposed convolution; one runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, stride=2)
        self.twice = nn.Conv2d(6, 6, 3, padding=1, groups=3)
        self.wide = nn.Conv2d(6, 4, 3, dilation=2, padding=2)
        self.up = nn.ConvTranspose2d(4, 3, 2, stride=2)

    def forward(self, images: Tensor) -> Tensor:
        output = self.twice(self.twice(self.stem(images)).relu_())
        return torch.as_tensor(self.up(self.wide(output)))


@pytest.mark.parametrize("batch", [1, 4])
def test_the_strongest_images_are_those_that_plain_hooks_find(
    tiny: Model, tmp_path: Path, batch: int
) -> None:
    paths = save_folder(tmp_path / "photos", 23)
    atlas = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", batch=batch)
    maps = by_plain_hooks(tiny, paths)
    check_tops(atlas, [path.name for path in paths], maps, 0.0 if batch == 1 else 1e-5)
    assert all_hooks(tiny) == 0
    for layer, values in maps.items():
        statistics = atlas.statistics(layer)
        best = values.max(axis=(2, 3))
        np.testing.assert_allclose(
            statistics.mean, values.mean(axis=(0, 2, 3), dtype=float), atol=1e-6
        )
        np.testing.assert_allclose(statistics.mean_maximum, best.mean(axis=0), atol=1e-5)
        share = np.bincount(best.argmax(axis=1), minlength=values.shape[1]) / len(paths)
        np.testing.assert_allclose(statistics.strongest, share)


def test_layers_of_every_kind_and_second_calls_have_their_lists(tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 12)
    model = as_model(seeded(Branches))
    atlas = hookviz.make_atlas(model, tmp_path / "photos", tmp_path / "a.atlas", top=4, batch=5)
    assert dict(atlas.layers) == {"stem": 6, "twice": 6, "twice#1": 6, "wide": 4, "up": 3}
    for path, layer in itertools.product(paths, atlas.layers):
        values = hookviz.capture(model, path)[layer].values
        for channel in range(atlas.layers[layer]):
            for entry in atlas.top_activations(layer, channel):
                if entry.image.name == path.name:
                    assert abs(float(values[channel][entry.cell]) - entry.value) < 1e-5


@pytest.mark.parametrize("size", [None, 24])
def test_a_patch_is_what_the_cell_sees_of_the_original(
    size: int | None, tiny: Model, tmp_path: Path
) -> None:
    [path] = save_folder(tmp_path / "photos", 1)
    atlas = hookviz.make_atlas(tiny, path, tmp_path / "a.atlas", top=1, size=size)
    pixels = np.asarray(hookviz.read_image(path).pixels)
    side, crop = size or 16, hookviz.prepare_input(tiny, path, size=size).crop
    assert crop is not None
    entry = atlas.top_activations("conv1", 2)[0]
    row, column = entry.cell
    scale = (crop.right - crop.left) / side
    top, left, bottom, right = (  # a 3×3 kernel with padding 1 sees one pixel around the cell
        max(0.0, crop.top + max(0, row - 1) * scale),
        max(0.0, crop.left + max(0, column - 1) * scale),
        crop.top + min(side, row + 2) * scale,
        crop.left + min(side, column + 2) * scale,
    )
    assert entry.box is not None
    np.testing.assert_allclose(entry.box, (top, left, bottom, right), atol=1.0)
    rows, columns = slice(entry.box[0], entry.box[2]), slice(entry.box[1], entry.box[3])
    np.testing.assert_array_equal(entry.patch, pixels[rows, columns])  # so small it is exact


def test_copies_count_once_and_what_is_no_image_is_left_out(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 6)
    shutil.copy(paths[1], tmp_path / "photos" / "copy of 1.png")
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"\xff\xd8\xff broken")
    (tmp_path / "photos" / "empty.png").touch()
    (tmp_path / "photos" / "deep").symlink_to(tmp_path / "photos")  # links in a circle
    (tmp_path / "photos" / "round.png").symlink_to("round.png")
    whole = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", top=7, batch=3)
    assert dict(whole.counts) == {"images": 9, "tallied": 7, "repeated": 1, "left_out": 2}
    assert sorted(whole.left_out) == ["broken.jpg", "empty.png"]
    assert "broken.jpg" in whole.left_out["broken.jpg"]
    names = [entry.image.name for entry in whole.top_activations("conv2", 3)]
    assert sorted(names) == sorted(path.name for path in paths)


def test_nan_counts_as_nothing(tmp_path: Path) -> None:
    class Odd(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            images = images.clone()
            images[images > 2.2] = torch.nan
            return super().forward(images)

    model = as_model(seeded(Odd))
    inputs = {f"{seed}": random_input(seed)[0] for seed in range(5)}
    atlas = hookviz.make_atlas(model, inputs, tmp_path / "a.atlas", top=2)
    statistics = atlas.statistics("conv1")
    assert np.isfinite(statistics.mean).all()
    assert (statistics.not_finite > 0).all()
    for channel in range(4):
        for entry in atlas.top_activations("conv1", channel):
            values = hookviz.capture(model, inputs[entry.image.name])["conv1"].values[channel]
            assert values.isnan().any()
            assert abs(entry.value - float(values.nan_to_num(-torch.inf).max())) < 1e-5
            assert (entry.patch, entry.box) == (None, None)


def test_a_network_that_mixes_images_gets_them_one_by_one(tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 7)
    for kind in (Mixing, Folding):
        model = as_model(seeded(kind))
        atlas = hookviz.make_atlas(model, paths, tmp_path / f"{kind.__name__}.atlas", top=3)
        check_tops(atlas, [path.name for path in paths], by_plain_hooks(model, paths), 0.0)


def test_a_stopped_run_goes_on_and_gives_the_same(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_folder(tmp_path / "photos", 30)
    monkeypatch.setattr("hookviz.atlas.plan._SHARD", 8)

    def make(name: str, **options: Any) -> hookviz.Atlas:
        return hookviz.make_atlas(
            tiny, tmp_path / "photos", tmp_path / name, batch=4, top=3, **options
        )

    make("whole.atlas")
    for stop in (0, 3, 7, 12, 16):
        reports: list[AtlasProgress] = []

        def end(progress: AtlasProgress, stop: int = stop, reports: Any = reports) -> None:
            reports.append(progress)
            if len(reports) > stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make(f"{stop}.atlas", progress=end)
        with pytest.raises(HookVizError, match="not finished"):
            hookviz.load_atlas(tmp_path / f"{stop}.atlas")
        again: list[AtlasProgress] = []
        make(f"{stop}.atlas", progress=again.append)
        reached = reports[-1].done if not reports[-1].cutting else 30
        assert again[0].done >= (reached // 8) * 8
        assert files_of(tmp_path / f"{stop}.atlas") == files_of(tmp_path / "whole.atlas")
    assert not list(tmp_path.glob("*.part"))


PROGRAM = """
import signal, sys, torch, hookviz
from hookviz.atlas import making, plan
from tests.networks import Tiny, as_model, seeded
torch.set_num_threads(1)
plan._SHARD, making._SECONDS = 32, 0.0
def show(progress):
    print(progress.done, progress.cutting, flush=True)
    if sys.argv[3:] == [str(progress.done)]:
        signal.pause()  # until it is killed
model = as_model(seeded(Tiny))
hookviz.make_atlas(model, sys.argv[1], sys.argv[2], top=2, batch=8, progress=show)
"""


def test_what_ends_it_inside_a_sum_leaves_no_part_of_one(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C can come anywhere."""
    monkeypatch.setattr("hookviz.atlas.plan._SHARD", 8)
    save_folder(tmp_path / "photos", 40)
    whole = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "whole.atlas", batch=4)
    merge, merges = Histograms.merge, itertools.count()

    def ended(histograms: Histograms, other: Histograms) -> None:
        merge(histograms, other)
        if next(merges) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Histograms, "merge", ended)
    for seconds in (0.0, 10.0):  # each sum written down, and none before the end
        monkeypatch.setattr("hookviz.atlas.making._SECONDS", seconds)
        merges = itertools.count()
        path = tmp_path / f"{seconds}.atlas"
        with pytest.raises(KeyboardInterrupt):
            hookviz.make_atlas(tiny, tmp_path / "photos", path, batch=4)
        hookviz.make_atlas(tiny, tmp_path / "photos", path, batch=4)
        assert files_of(path) == files_of(whole.path)


@pytest.mark.sweep("by day it is stopped at any image, and its disk is full: the tests around it")
def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    save_folder(tmp_path / "photos", 96)

    def start(name: str, *until: str) -> subprocess.Popen[str]:
        arguments = [
            *(sys.executable, "-c", PROGRAM),
            *(str(tmp_path / "photos"), str(tmp_path / name), *until),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)

    def lines(run: subprocess.Popen[str]) -> list[str]:
        return (run.communicate(timeout=120)[0]).splitlines()

    with start("whole.atlas") as run:
        lines(run)
    with start("killed.atlas", "72") as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("72 "):
                run.send_signal(signal.SIGKILL)
                break
    assert run.returncode == -signal.SIGKILL
    with start("killed.atlas") as run:
        assert lines(run)[0] == "64 False"
    assert files_of(tmp_path / "killed.atlas") == files_of(tmp_path / "whole.atlas")


def test_a_full_disk_is_told_and_what_was_done_is_kept(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real file system says so, by the limit on a file's size."""
    resource = pytest.importorskip("resource")
    save_folder(tmp_path / "photos", 12)
    whole = hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "whole.atlas", batch=4)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", batch=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", batch=4)
    assert files_of(tmp_path / "a.atlas") == files_of(whole.path)


def test_what_is_there_is_not_made_again_and_not_overwritten(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 3)
    target = tmp_path / "a.atlas"
    hookviz.make_atlas(tiny, paths, target)
    reports: list[AtlasProgress] = []
    hookviz.make_atlas(tiny, paths, target, progress=reports.append)
    assert reports == []
    with pytest.raises(HookVizError, match=r"another atlas: top is 9, not 4.*overwrite"):
        hookviz.make_atlas(tiny, paths, target, top=4)
    with pytest.raises(HookVizError, match="it is of 3 images, not 2"):
        hookviz.make_atlas(tiny, paths[:2], target)
    other = as_model(Tiny())
    with pytest.raises(HookVizError, match="other weights"):
        hookviz.make_atlas(other, paths, target)
    assert hookviz.make_atlas(other, paths, target, overwrite=True).belongs_to(other)
    (target / "notes.txt").write_text("mine")
    reports.clear()
    with pytest.raises(HookVizError, match=r"'notes.txt', which is no part of an atlas"):
        hookviz.make_atlas(tiny, paths, target, overwrite=True, progress=reports.append)
    assert reports == []
    assert (target / "notes.txt").read_text() == "mine"


def test_the_beginning_of_another_atlas_is_not_gone_on_with(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 5)

    def end(_progress: AtlasProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", progress=end)
    with pytest.raises(HookVizError, match=r"beginning of another atlas: batch is 16, not 2"):
        hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", batch=2)
    assert hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", batch=2, overwrite=True).images


def test_an_image_that_changes_meanwhile_has_no_patch(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 4)

    def change(progress: AtlasProgress) -> None:
        if progress.cutting and progress.done == 0:
            picture(99).save(paths[2])
            paths[3].unlink()

    atlas = hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", top=4, progress=change)
    by_name = {entry.image.name: entry for entry in atlas.top_activations("conv1", 0)}
    assert by_name["001.png"].patch is not None
    for name in ("002.png", "003.png"):
        assert (by_name[name].patch, by_name[name].image.height) == (None, 0)


def test_what_does_not_work(tiny: Model, tmp_path: Path) -> None:
    [path] = save_folder(tmp_path / "photos", 1)
    with pytest.raises(SettingError, match=r"such as 'photos.atlas'"):
        hookviz.make_atlas(tiny, path, tmp_path / "photos")
    with pytest.raises(SettingError, match="top=0"):
        hookviz.make_atlas(tiny, path, tmp_path / "a.atlas", top=0)
    with pytest.raises(SettingError, match="'bfloat16'"):
        hookviz.make_atlas(tiny, path, tmp_path / "a.atlas", dtype="bfloat61")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImageError, match="gives no image"):
        hookviz.make_atlas(tiny, tmp_path / "empty", tmp_path / "a.atlas")
    with pytest.raises(HookVizError, match="no image to make an atlas of"):
        hookviz.make_atlas(tiny, [], tmp_path / "a.atlas")
    (tmp_path / "bad").mkdir()
    for name in ("a.png", "b.png"):
        (tmp_path / "bad" / name).write_bytes(b"nothing")
    with pytest.raises(HookVizError, match=r"None of the 2 images can be used. a.png: "):
        hookviz.make_atlas(tiny, tmp_path / "bad", tmp_path / "a.atlas")
    linear = as_model(nn.Sequential(nn.Flatten(), nn.Linear(768, 2)))
    with pytest.raises(ModelError, match="has no layer whose maps"):
        hookviz.make_atlas(linear, path, tmp_path / "a.atlas")
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(1, 4, 9))))
    with pytest.raises(ModelError, match="takes no images"):
        hookviz.make_atlas(sound, path, tmp_path / "a.atlas")
    paths = save_folder(tmp_path / "photos", 3)

    def another(_progress: AtlasProgress) -> None:
        hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas")

    with pytest.raises(HookVizError, match="Another process is making"):
        hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", progress=another)


def test_bfloat16_is_near(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 8)
    before = {name: value.clone() for name, value in tiny.network.state_dict().items()}
    atlas = hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", dtype="bfloat16", batch=4)
    check_tops(atlas, [path.name for path in paths], by_plain_hooks(tiny, paths), 2e-2)
    for name, value in tiny.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_progress_tells_images_and_the_time_left(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path / "photos", 10)
    paths[4].write_bytes(b"")
    reports: list[AtlasProgress] = []
    hookviz.make_atlas(tiny, paths, tmp_path / "a.atlas", batch=4, progress=reports.append)
    passes = [each for each in reports if not each.cutting]
    assert [each.done for each in passes] == [0, 4, 8, 10]
    assert passes[-1].left_out == 1
    assert passes[0].seconds_left is None
    assert passes[1].seconds_left is not None
    shares = [each.share for each in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
