"""Folders of safetensors and Zarr groups hold the same, and a broken run goes on in both."""

import importlib.util
import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hookviz
from hookviz.capturing.stored_activations import store_in
from hookviz.errors import HookVizError, SettingError
from hookviz.paths import write_whole
from tests.networks import random_input

with_zarr = pytest.mark.skipif(
    importlib.util.find_spec("zarr") is None, reason="zarr is not installed"
)
FORMATS = ["maps", pytest.param("maps.zarr", marks=with_zarr)]


def given(count: int = 7) -> dict[str, Any]:
    """Images by name, and a file that can't be read in the second shard of three."""
    images: dict[str, Any] = {str(seed): random_input(seed) for seed in range(count)}
    return {**{name: images.pop(name) for name in "0123"}, "bad": b"nothing", **images}


def files_of(folder: Path) -> dict[str, bytes]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_those_of_captures_in_any_order(
    name: str, tiny: hookviz.Model, tmp_path: Path
) -> None:
    stored = hookviz.stream(tiny, given(), ["conv1", "relu"], to=tmp_path / name, batch_size=3)
    assert stored.names == tuple("0123456")
    assert list(stored.failed) == ["bad"]
    assert list(stored) == ["conv1", "relu", "relu#1"]
    rows = [hookviz.capture(tiny, random_input(seed), "conv1")["conv1"].raw for seed in range(7)]
    layer = stored["conv1"]
    assert layer.shape == (7, *rows[0].shape)
    for number, row in enumerate(rows):
        torch.testing.assert_close(layer[number], row)
    for part in (slice(None), slice(2, 6), slice(None, None, -2), slice(5, 5)):
        torch.testing.assert_close(layer[part], torch.stack(rows)[list(range(7))[part]])
    mask = torch.arange(7) % 3 == 0
    chosen: list[Any] = [[6, 0, 5, 0], np.array([2, -1]), mask, mask.tolist()]
    for some in chosen:
        torch.testing.assert_close(layer[some], torch.stack(rows)[torch.as_tensor(some)])
    assert layer[[]].equal(layer[:0])
    wrong: list[Any] = [7, [0, -8], mask[1:], [[0, 1]]]
    for some in wrong:
        with pytest.raises(IndexError):
            layer[some]
    sent = pickle.loads(pickle.dumps(stored))  # noqa: S301 - ours
    assert sent["relu#1"][6].equal(stored["relu#1"][6])
    assert hookviz.StoredActivations(tmp_path / name)["conv1"][4].equal(layer[4])
    for number, row in enumerate(stored["relu#1"]):
        alone = hookviz.capture(tiny, random_input(number), "relu")["relu#1"].raw
        torch.testing.assert_close(row, alone)
    assert layer[-1].equal(layer[6])
    means = hookviz.stream(tiny, given(), "conv1", to=tmp_path / f"means {name}", pool="mean")
    torch.testing.assert_close(means["conv1"][2], layer[2].mean((1, 2)))
    halves = hookviz.stream(
        tiny, given(), "conv1", to=tmp_path / f"halves {name}", dtype=torch.float16
    )
    torch.testing.assert_close(halves["conv1"][2], layer[2].half())


@pytest.mark.parametrize("written", [1, 2, 3])
@pytest.mark.parametrize("name", FORMATS)
def test_a_run_that_broke_off_goes_on_and_leaves_the_same_bytes(
    name: str, written: int, tiny: hookviz.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before the file that says that a shard is there."""
    whole, broken = tmp_path / "whole" / name, tmp_path / "broken" / name
    hookviz.stream(tiny, given(), ["conv1", "conv2"], to=whole, batch_size=3)
    left = iter(range(written))

    def write(path: Path, data: bytes) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        write_whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr("hookviz.capturing.stored_activations.write_whole", write)
        with pytest.raises(KeyboardInterrupt):
            hookviz.stream(tiny, given(), ["conv1", "conv2"], to=broken, batch_size=3)
    assert files_of(broken) != files_of(whole)
    begun = {file: file.stat().st_mtime_ns for file in broken.glob("*.safetensors")}
    stored = hookviz.stream(tiny, given(), ["conv1", "conv2"], to=broken, batch_size=3)
    assert files_of(broken) == files_of(whole)
    assert sum(file.stat().st_mtime_ns != at for file, at in begun.items()) <= 1
    assert len(stored["conv2"]) == 7


@with_zarr
def test_zarr_has_one_array_a_layer_in_chunks_of_a_batch(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    stored = hookviz.stream(
        tiny, given(), "conv1", to=tmp_path / "maps.zarr", batch_size=3, dtype=torch.float16
    )
    group = import_module("zarr").open_group(tmp_path / "maps.zarr", mode="r")
    array = group["conv1"]
    assert array.chunks == (3, *array.shape[1:])
    assert array.dtype == np.float16
    np.testing.assert_array_equal(array[:], stored["conv1"][:].numpy())
    assert group.attrs["model"] == stored.about["model"] == tiny.name
    assert group.attrs["layers"] == ["conv1"]
    with pytest.raises(SettingError, match=r"layers=.*'conv1'.*not.*'conv2'"):
        hookviz.stream(tiny, given(), "conv2", to=tmp_path / "maps.zarr", batch_size=3)


@with_zarr
def test_what_zarr_can_not_hold_is_refused_and_without_it_is_said_what_to_install(
    tiny: hookviz.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingError, match=r"Zarr holds no torch.bfloat16; dtype=torch.float16"):
        hookviz.stream(tiny, given(), "conv1", to=tmp_path / "half.zarr", dtype=torch.bfloat16)
    sizes = [torch.rand(3, 16, 16), torch.rand(3, 20, 16)]
    for batch_size in (1, 2):
        folder = tmp_path / f"{batch_size}.zarr"
        with pytest.raises(SettingError, match=r'different sizes.*pool="mean"'):
            hookviz.stream(tiny, sizes, "conv1", to=folder, batch_size=batch_size)
    with pytest.raises(HookVizError, match=r"no activations.*zarr\.json"):
        hookviz.StoredActivations(tmp_path / "none.zarr")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(HookVizError, match=r"maps\.zarr' asks for Zarr.*: pip install zarr\."):
        hookviz.stream(tiny, given(), "conv1", to=tmp_path / "maps.zarr")
    assert not (tmp_path / "maps.zarr").exists()
    assert store_in(tmp_path / "maps").about is None
