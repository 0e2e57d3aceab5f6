import argparse
import io
import json
import pathlib
import pickle
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import hookviz
from hookviz.models.checkpoints import guards
from hookviz.models.checkpoints.files import read_state_dict
from hookviz.models.checkpoints.guards import check_archive
from hookviz.reader import wall
from tests.models.checkpoints.checkpoint_files import (
    EXECUTED,
    STATE,
    Bomb,
    old_format,
    saved,
    zipped,
)


def test_a_pickle_of_very_many_things_is_refused_before_it_is_built() -> None:
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        read_state_dict(saved([[] for _ in range(2_000_000)]))


def test_a_header_of_very_many_tensors_is_refused_before_the_library_reads_it() -> None:
    for count in (20_001, 70_000):  # the second has more than 4 MB
        with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
            read_state_dict(empty_tensors(count))
    assert len(read_state_dict(empty_tensors(20_000))) == 20_000


def empty_tensors(count: int) -> bytes:
    """Return a file of safetensors that has so many without values."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": empty for number in range(count)}).encode()
    return len(header).to_bytes(8, "little") + header


def test_a_zip_of_very_many_entries_is_refused_before_they_are_listed() -> None:
    """By 40,000 records of 120 bytes, of each of which zipfile would make an object."""
    name = b"x/data.pkl".ljust(74, b"_")
    record = b"PK\x01\x02" + bytes(24) + struct.pack("<H", len(name)) + bytes(16) + name
    directory = record * 40_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 40_000, 40_000, len(directory), 0, 0)
    file = io.BytesIO(directory + end)
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        check_archive(file, len(file.getvalue()), "many.pt")


@pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")
def test_pickles_are_followed_behind_the_wall() -> None:
    """The app's own processors are hardly used, so that it answers others meanwhile."""
    refused = saved([*range(400_000), bytearray(1)])

    def time_of_refusal() -> float:
        begun = time.thread_time()
        with pytest.raises(hookviz.WeightsError, match=r"a\.pth.*bytearray"):
            read_state_dict(refused, "a.pth")
        return time.thread_time() - begun

    here = time_of_refusal()
    wall.put_up()
    try:
        assert set(read_state_dict(saved({"weight": torch.ones(2)}))) == {"weight"}
        assert time_of_refusal() < here / 2
    finally:
        wall.take_down()


@pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")
def test_headers_are_read_behind_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = b'{"a":' + b"[" * 4000
    wall.put_up()
    try:
        monkeypatch.setattr(guards, "follow_header", None)  # of this process
        assert set(read_state_dict(safetensors.torch.save({"weight": torch.ones(2)}))) == {"weight"}
        for data, reason in (
            (empty_tensors(20_001), "more tensors than any network"),
            (len(nested).to_bytes(8, "little") + nested, "64 brackets in one another"),
        ):
            with pytest.raises(hookviz.WeightsError, match=rf"a\.st.*{reason}"):
                read_state_dict(data, "a.st")
    finally:
        wall.take_down()


class Mine:
    pass


@pytest.mark.parametrize("write", [saved, old_format])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (nn.Conv2d(1, 1, 1), r"torch\.nn\.modules\.conv\.Conv2d .*torch\.save\(model\) writes it"),
        ({"state_dict": STATE, "best": np.float64(3)}, r"numpy\S*scalar .*a NumPy value"),
        ({"a": np.zeros(3, np.float32)}, r"numpy\S*_reconstruct .*a NumPy value"),
        ({"model": STATE, "args": argparse.Namespace(lr=1)}, r"argparse\.Namespace .*options"),
        ({"model": STATE, "at": pathlib.PurePosixPath("x")}, r"pathlib\.\S+ .*options"),
        ({"model": STATE, "hook": saved}, r"checkpoint_files\.saved"),
        ({"model": STATE, "mine": Mine()}, r"test_guards\.Mine"),
        ({"model": STATE, "bomb": Bomb()}, r"getattr .*may be meant to do harm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_are_refused_by_name_and_never_run(
    value: Any, wanted: str, write: Callable[[Any], bytes]
) -> None:
    with pytest.raises(hookviz.WeightsError, match=wanted) as caught:
        read_state_dict(write(value), "whole.pth")
    text = str(caught.value)
    assert text.startswith("whole.pth is refused: it holds more than tensors")
    assert 'torch.save(model.state_dict(), "weights.pth")' in text
    assert EXECUTED == []


def scripted() -> bytes:
    """A program as torch.jit.save lays it out, without the deprecated call."""
    return zipped(
        {"m/data.pkl": b"\x80\x02}.", "m/constants.pkl": b"\x80\x02).", "m/version": b"3"}
    )


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")  # torch's own
def test_another_pickle_protocol_is_refused_and_a_name_tells_what_bytes_do_not() -> None:
    for data, name, reason in (
        (saved(STATE, pickle_protocol=4), "a.pth", r"another protocol than torch\.save's own"),
        (b"\n\x0bplaceholder", "frozen.pb", "by its name it is a TensorFlow graph"),
    ):
        with pytest.raises(hookviz.WeightsError, match=reason):
            read_state_dict(data, name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"just some words", "first bytes, b'just som', are of no kind known"),
        (pickle.dumps({"weight": Bomb()}, protocol=2), "a Python pickle that torch.save did not"),
        (pickle.dumps({"weight": Bomb()}, protocol=4), "a Python pickle that torch.save did not"),
        (pickle.dumps({"weight": 1}, protocol=0), "a Python pickle that torch.save did not"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html><title>404 Not Found</title>", "web page.*'404 Not Found'"),
        (b"\n <HTML><body>no</body>", "a web page, so the download went wrong"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code>", "web page.*'AccessDenied'"),
        (b'{"error": "gone"}', "JSON text"),
        (b'{"metadata": {},\n "weight_map": {}}', "index of a checkpoint in several files"),
        (b"\x89HDF\r\n\x1a\n" + bytes(99), "HDF5 file, as Keras"),
        (b"\x08\x08\x12\x07pytorch" + bytes(99), "an ONNX model"),
        (b"\x08\x01\x12\x07" + bytes(99), "a TensorFlow SavedModel"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(99), "a TensorFlow Lite model"),
        (b"\x1f\x8b\x08" + bytes(99), "compressed by gzip; unpack it"),
        (b"\x89PNG\r\n", "a picture"),
        (scripted(), "a TorchScript program"),
        (zipped({"a/saved_model.pb": b"1"}), "a zipped TensorFlow SavedModel"),
        (zipped({"model.weights.h5": b"1"}), "a Keras model"),
        (zipped({"weights.npy": b"1"}), "NumPy arrays"),
        (zipped({"my/resnet.pth": b"1"}), "a zip with a checkpoint inside; unpack it"),
        (zipped({"a.txt": b"1"}), "a zip archive that holds a.txt"),
        (zipped({}), "a zip archive that holds nothing"),
        (saved(STATE)[:-40], "cut short or damaged"),
        (saved(STATE)[:90], "cut short or damaged"),
        (old_format(STATE)[:-9], "cut short or damaged"),
        (safetensors.torch.save(STATE)[:-1], "cut short or damaged"),
        (safetensors.torch.save(STATE)[:30], "its header alone should take"),
        ((1 << 39).to_bytes(8, "little") + b'{"a":1}', "its header alone should take"),
        (
            zipped({"a/data.pkl": b"1", "a/data/0": bytes(9_000_000)}, zipfile.ZIP_DEFLATED),
            "would unpack from",
        ),
    ],
)
def test_what_is_no_checkpoint_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    wanted = rf"(?s)^odd\.pth can't be read as a checkpoint: .*{reason}.*\.safetensors"
    with pytest.raises(hookviz.WeightsError, match=wanted):
        read_state_dict(content, "odd.pth")
    (tmp_path / "odd.pth").write_bytes(content)
    with pytest.raises(hookviz.WeightsError, match=wanted):
        read_state_dict(tmp_path / "odd.pth")
    assert EXECUTED == []
