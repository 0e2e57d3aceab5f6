import pickle
import zipfile
from pathlib import Path

import pytest
import safetensors.torch

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict
from tests.models.checkpoints.checkpoint_files import (
    EXECUTED,
    STATE,
    Bomb,
    old_format,
    saved,
    zipped,
)


def scripted() -> bytes:
    """A program as torch.jit.save lays it out, without the deprecated call."""
    return zipped(
        {"m/data.pkl": b"\x80\x02}.", "m/constants.pkl": b"\x80\x02).", "m/version": b"3"}
    )


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


def test_a_name_tells_what_bytes_do_not() -> None:
    with pytest.raises(hookviz.WeightsError, match="by its name it is a TensorFlow graph"):
        read_state_dict(b"\n\x0bplaceholder", "frozen.pb")
