import os
import signal
import subprocess
import sys
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import hookviz
from hookviz.errors import ImageError, SettingError, UnknownLayerError
from tests.atlas.folders import save_folder
from tests.networks import all_hooks, random_input
from tests.pictures import picture


def test_each_capture_is_the_one_of_capture(tiny: hookviz.Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 3)
    shares: list[float] = []
    images = [*paths, random_input(5)]
    found = dict(hookviz.stream(tiny, images, ["conv1"], batch_size=1, progress=shares.append))
    assert list(found) == ["000.png", "001.png", "002.png", "image 4"]
    for image, cap in zip(images, found.values(), strict=True):
        own = hookviz.capture(tiny, image, ["conv1"])
        assert list(cap) == ["conv1"]
        assert cap["conv1"].values.equal(own["conv1"].values)
        assert cap.logits.equal(own.logits)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_what_is_made_of_it_comes_in_its_place(tiny: hookviz.Model) -> None:
    found = hookviz.stream(tiny, {"a": random_input(1)}, "conv2", len, logits=False)
    assert list(found) == [("a", 1)]


def test_one_after_another(tiny: hookviz.Model) -> None:
    made: list[int] = []

    def then(_cap: hookviz.Capture) -> int:
        made.append(len(made))
        return made[-1]

    endless = (random_input(seed) for seed in count())
    pairs = hookviz.stream(tiny, endless, then=then, batch_size=2)
    assert list(islice(pairs, 3)) == [("image 1", 0), ("image 2", 1), ("image 3", 2)]
    assert len(made) == 4  # as far as it was needed
    pairs.close()


def test_one_that_can_not_be_read_is_told_and_the_rest_go_on(tiny: hookviz.Model) -> None:
    found = dict(hookviz.stream(tiny, {"a": b"nothing", "b": random_input(2)}))
    assert isinstance(found["a"], ImageError)
    assert isinstance(found["b"], hookviz.Capture)


def test_what_would_be_with_every_image_ends_it(tiny: hookviz.Model) -> None:
    with pytest.raises(UnknownLayerError):
        list(hookviz.stream(tiny, [random_input(1)], "conv7"))
    with pytest.raises(SettingError, match="'rya'"):
        list(hookviz.stream(tiny, [random_input(1)], engine="rya"))


def test_whoever_is_told_can_end_it(tiny: hookviz.Model) -> None:
    def end(_share: float) -> Any:
        raise ImageError("enough")

    with pytest.raises(ImageError, match="enough"):
        list(hookviz.stream(tiny, [random_input(1), random_input(2)], progress=end))
    assert all_hooks(tiny) == 0


def test_together_each_capture_equals_that_of_single_passes(tiny: hookviz.Model) -> None:
    rows = TensorDataset(torch.rand(7, 3, 16, 16), torch.arange(7))
    for images in (rows, DataLoader(rows, 3)):
        found = dict(hookviz.stream(tiny, images, "conv*", batch_size=4))
        assert list(found) == [f"image {number}" for number in range(1, 8)]
        for image, cap in zip(rows.tensors[0], found.values(), strict=True):
            alone: hookviz.Capture = hookviz.capture(tiny, image)
            assert list(cap) == list(alone)
            torch.testing.assert_close(cap["conv2"].raw, alone["conv2"].raw)
            torch.testing.assert_close(cap.logits, alone.logits)


class Endless(IterableDataset[torch.Tensor]):
    """A dataset without a length."""

    def __iter__(self) -> Any:
        return iter([random_input(seed)[0] for seed in range(3)])


def test_a_dataset_without_a_length_is_gone_through(tiny: hookviz.Model) -> None:
    for images in (Endless(), DataLoader(Endless(), 2)):
        shares: list[float] = []
        found = dict(hookviz.stream(tiny, images, "conv1", progress=shares.append))
        assert list(found) == ["image 1", "image 2", "image 3"]
        assert shares == []
        assert len(hookviz.capture(tiny, images, "conv1")) == 3


def test_the_images_of_a_folder_are_captured(tiny: hookviz.Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 3)
    (tmp_path / "notes.txt").write_text("no image")
    shares: list[float] = []
    found = dict(hookviz.stream(tiny, str(tmp_path), "conv1", progress=shares.append))
    assert shares[-1] == 1
    assert sorted(shares) == shares
    assert list(found) == [path.name for path in paths]
    batch = hookviz.capture(tiny, tmp_path, "conv1")
    assert batch["conv1"].raw.equal(hookviz.capture(tiny, paths, "conv1")["conv1"].raw)
    assert hookviz.extract_features(tiny, tmp_path).names == tuple(found)
    of_several: Any = batch
    with pytest.raises(hookviz.HookVizError, match=r"of one image.*\[0\]"):
        hookviz.make_grid(of_several["conv1"])
    with pytest.raises(hookviz.HookVizError, match=r"of one image.*batch\[0\]"):
        hookviz.save_page(of_several, tmp_path / "page.html")


def test_a_folder_holds_what_capture_gives(tiny: hookviz.Model, tmp_path: Path) -> None:
    images = [random_input(seed) for seed in range(5)]
    given = {**{str(number): image for number, image in enumerate(images)}, "bad": b"nothing"}
    stored = hookviz.stream(tiny, given, ["conv1", "relu"], to=tmp_path / "maps", batch_size=2)
    assert stored.names == ("0", "1", "2", "3", "4")
    assert list(stored.failed) == ["bad"]
    assert list(stored) == ["conv1", "relu", "relu#1"]
    assert stored["conv1"].shape == (5, *hookviz.capture(tiny, images[0])["conv1"].raw.shape)
    for number, (row, image) in enumerate(zip(stored["relu#1"], images, strict=True)):
        alone = hookviz.capture(tiny, image, "relu")["relu#1"].raw
        torch.testing.assert_close(row, alone)
        assert stored["relu#1"][number].equal(row)
    assert stored["conv1"][1:4].equal(torch.stack(list(stored["conv1"])[1:4]))
    assert stored["conv1"][-1].equal(stored["conv1"][4])
    again = hookviz.StoredActivations(tmp_path / "maps")
    assert again["conv1"][3].equal(stored["conv1"][3])
    pooled = hookviz.stream(tiny, given, "conv1", to=tmp_path / "means", pool="mean")
    torch.testing.assert_close(pooled["conv1"][2], stored["conv1"][2].mean((1, 2)))
    halved = hookviz.stream(tiny, given, "conv1", to=tmp_path / "halves", dtype=torch.float16)
    torch.testing.assert_close(halved["conv1"][2], stored["conv1"][2].half())


def test_a_run_goes_on_whatever_chose_its_layers(tiny: hookviz.Model, tmp_path: Path) -> None:
    for last in (2, 4):
        images = [random_input(seed) for seed in range(last)]
        chosen: list[Any] = [lambda name, _module: name == "conv1", tiny.network.conv2]
        stored = hookviz.stream(tiny, images, chosen, to=tmp_path / "maps", batch_size=2)
        assert list(stored) == ["conv1", "conv2"]
        assert len(stored["conv1"]) == last


@pytest.mark.parametrize("kind", ["tensor", "array", "picture", "bytes", "file"])
def test_other_images_of_the_same_names_are_refused(
    tiny: hookviz.Model, tmp_path: Path, kind: str
) -> None:
    def given(seed: int) -> list[Any]:
        file = tmp_path / str(seed) / "one.png"
        file.parent.mkdir(exist_ok=True)
        picture(seed).save(file)
        image: Any = {
            "tensor": random_input(seed)[0],
            "array": random_input(seed)[0].numpy(),
            "picture": picture(seed),
            "bytes": file.read_bytes(),
            "file": file,
        }[kind]
        return [image]

    folder = tmp_path / "maps"
    hookviz.stream(tiny, given(0), "conv1", to=folder)
    assert len(hookviz.stream(tiny, given(0), "conv1", to=folder)["conv1"]) == 1
    with pytest.raises(SettingError, match="of other images"):
        hookviz.stream(tiny, given(1), "conv1", to=folder)


def test_a_run_that_goes_on_begins_at_the_share_that_is_done(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    images = [random_input(seed) for seed in range(6)]
    hookviz.stream(tiny, images[:4], "conv1", to=tmp_path / "maps", batch_size=2)
    for again in range(2):
        shares: list[float] = []
        hookviz.stream(
            tiny, images, "conv1", to=tmp_path / "maps", batch_size=2, progress=shares.append
        )
        assert (shares[0] > 4 / 6, shares[-1]) == (True, 1), again


def test_what_has_no_bytes_to_compare_is_left_out_in_words(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    odd = [np.array([None]), torch.rand(3, 4, 4).to_sparse(), torch.rand(3, 4, 4, device="meta")]
    for _ in range(2):
        stored = hookviz.stream(tiny, [*odd, random_input(0)[0]], "conv1", to=tmp_path / "maps")
        assert list(stored.failed) == ["image 1", "image 2", "image 3"]


def test_a_folder_of_another_run_is_refused(tiny: hookviz.Model, tmp_path: Path) -> None:
    images = [random_input(seed) for seed in range(3)]
    folder = tmp_path / "maps"
    hookviz.stream(tiny, images, "conv1", to=folder)
    with pytest.raises(SettingError, match=r"layers=.*'conv1'.*not.*'conv2'"):
        hookviz.stream(tiny, images, "conv2", to=folder)
    with pytest.raises(SettingError, match="of other images"):
        hookviz.stream(tiny, images[:2], "conv1", to=folder)
    with pytest.raises(SettingError, match="holds other files"):
        hookviz.stream(tiny, images, "conv1", to=tmp_path)
    with pytest.raises(hookviz.HookVizError, match=r"no activations.*activations\.json"):
        hookviz.StoredActivations(tmp_path)
    sizes = [torch.rand(3, 16, 16), torch.rand(3, 20, 16)]
    with pytest.raises(SettingError, match=r'different sizes.*pool="mean"'):
        hookviz.stream(tiny, sizes, "conv1", to=tmp_path / "sizes")
    with pytest.raises(SettingError, match="batch_size=0"):
        hookviz.stream(tiny, images, "conv1", batch_size=0)


RUN = """
import sys, torch, hookviz
from torch import nn
torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
def images():
    for seed in range(40):
        yield torch.full((3, 8, 8), seed / 40)
        print(seed, flush=True)
        if seed == int(sys.argv[2]):
            sys.stdin.read()
hookviz.stream(network, images(), "*", to=sys.argv[1], batch_size=4)
"""


@pytest.mark.by_day
def test_a_killed_run_goes_on_and_leaves_the_same_bytes(tmp_path: Path) -> None:
    def run(folder: Path, pause: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", RUN, str(folder), str(pause)]
        return subprocess.Popen(command, stdin=-1, stdout=-1, text=True)

    assert run(tmp_path / "whole", -1).communicate()[0].split()[-1] == "39"
    with run(tmp_path / "killed", 22) as killed:
        assert killed.stdout is not None
        assert any(line.strip() == "22" for line in killed.stdout)
        os.kill(killed.pid, signal.SIGKILL)
    begun = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "killed").iterdir()}
    assert len(begun) == 1 + 5
    run(tmp_path / "killed", -1).communicate()
    whole = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    assert whole == {file.name: file.read_bytes() for file in (tmp_path / "killed").iterdir()}
    del begun["activations.json"]
    assert all((tmp_path / "killed" / name).stat().st_mtime_ns == at for name, at in begun.items())


def test_old_names_warn_and_do_what_they_did(tiny: hookviz.Model) -> None:
    images = torch.rand(3, 3, 16, 16)
    with pytest.warns(DeprecationWarning, match=r"capture_batch.*hookviz\.capture\("):
        batch = hookviz.capture_batch(tiny, images, "conv1")  # type: ignore[attr-defined]
    assert isinstance(batch, tuple)
    assert batch[2]["conv1"].raw.equal(hookviz.capture(tiny, images, "conv1")[2]["conv1"].raw)
    with pytest.warns(DeprecationWarning, match=r"capture_batch"):
        assert len(hookviz.capture_batch(tiny, images[:1])) == 1  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"capture_each.*hookviz\.stream\("):
        each = list(hookviz.capture_each(tiny, [images[0]]))  # type: ignore[attr-defined]
    [(name, cap)] = each
    assert name == "image 1"
    assert cap["conv1"].raw.equal(hookviz.capture(tiny, images[0])["conv1"].raw)
