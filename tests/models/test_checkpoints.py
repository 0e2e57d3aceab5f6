import argparse
import io
import pathlib
import pickle
import random
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import hookviz
from hookviz.models import checkpoints
from tests.conftest import Tiny, seeded


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def old_format(value: Any) -> bytes:
    return saved(value, _use_new_zipfile_serialization=False)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def scripted() -> bytes:
    """A program as torch.jit.save lays it out, without the deprecated call."""
    return zipped(
        {"m/data.pkl": b"\x80\x02}.", "m/constants.pkl": b"\x80\x02).", "m/version": b"3"}
    )


STATE = seeded(Tiny).state_dict()


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return found.keys() == expected.keys() and all(
        torch.equal(found[key], expected[key]) for key in expected
    )


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
@pytest.mark.parametrize("file_name", ["w.pth", "w.safetensors", "w"])
def test_the_kind_is_told_by_content_and_not_by_name(
    tmp_path: Path, write: Callable[[Any], bytes], file_name: str
) -> None:
    data = write(STATE)
    (tmp_path / file_name).write_bytes(data)
    assert same(checkpoints.read(tmp_path / file_name), STATE)
    assert same(checkpoints.read(data, file_name), STATE)


OTHER = {key: value + 1 for key, value in STATE.items()}
ADAM = {"state": {0: {"step": torch.ones(1), "exp_avg": torch.ones(9)}}, "param_groups": [{}]}


WRAPPED: list[dict[Any, Any]] = [
    *({key: STATE, "epoch": 3} for key in checkpoints._PLAIN),
    {"epoch": 3, "arch": "tiny", "state_dict": STATE, "best_acc1": torch.tensor(71.0)},
    {"model": STATE, "optimizer": ADAM, "args": {"lr": 0.1, "size": torch.ones(2)}},
    {"model": {"state_dict": {"module": STATE}}},
    {"Model": STATE, "model_ema": OTHER},
    {"ema": OTHER, "net": STATE},
    {"state_dict_ema": STATE, "optimizer": ADAM, "rng_state": torch.ones(5)},
    {"ema": {"shadow": STATE}},
    {"generator": STATE, "loss": {"weight": torch.ones(1)}},
    {**STATE, "epoch": 3, "optimizer": ADAM, "_extra_state": None, 7: torch.ones(1)},
    {"backbone_of_mine": STATE, "note": "in two weeks"},
]


@pytest.mark.parametrize("wrapped", WRAPPED, ids=lambda wrapped: "+".join(map(str, wrapped))[:40])
def test_wrappings_come_off(wrapped: dict[Any, Any]) -> None:
    assert same(checkpoints.read(saved(wrapped)), STATE)


def test_parameters_and_types_stay_as_they_are_without_gradients() -> None:
    found = checkpoints.read(saved(OrderedDict(Tiny().half().named_parameters())))
    assert {tensor.dtype for tensor in found.values()} == {torch.float16}
    assert not any(tensor.requires_grad for tensor in found.values())


EXECUTED: list[str] = []


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return EXECUTED.append, ("a pickle was executed",)


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
        ({"model": STATE, "hook": saved}, r"tests\.test_checkpoints\.saved"),
        ({"model": STATE, "mine": Mine()}, r"tests\.test_checkpoints\.Mine"),
        ({"model": STATE, "bomb": Bomb()}, r"getattr .*may be meant to do harm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects_are_refused_by_name_and_never_run(
    value: Any, wanted: str, write: Callable[[Any], bytes]
) -> None:
    with pytest.raises(hookviz.WeightsError, match=wanted) as caught:
        checkpoints.read(write(value), "whole.pth")
    text = str(caught.value)
    assert text.startswith("whole.pth is refused: it holds more than tensors")
    assert 'torch.save(model.state_dict(), "weights.pth")' in text
    assert EXECUTED == []


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")  # torch's own
def test_another_pickle_protocol_is_refused_with_what_works() -> None:
    with pytest.raises(hookviz.WeightsError, match=r"another protocol than torch\.save's own"):
        checkpoints.read(saved(STATE, pickle_protocol=4))


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
        checkpoints.read(content, "odd.pth")
    (tmp_path / "odd.pth").write_bytes(content)
    with pytest.raises(hookviz.WeightsError, match=wanted):
        checkpoints.read(tmp_path / "odd.pth")
    assert EXECUTED == []


def test_a_name_tells_what_bytes_do_not() -> None:
    with pytest.raises(hookviz.WeightsError, match="by its name it is a TensorFlow graph"):
        checkpoints.read(b"\n\x0bplaceholder", "frozen.pb")


def test_a_header_that_lies_about_sizes_takes_no_memory() -> None:
    header = b'{"w":{"dtype":"F32","shape":[100000000000],"data_offsets":[0,400000000000]}}'
    with pytest.raises(hookviz.WeightsError, match="cut short or damaged"):
        checkpoints.read(len(header).to_bytes(8, "little") + header + bytes(64))


def quantised() -> Tensor:
    return torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: torch.zeros(1).expand(10**12),
            "claims 1,000,000,000,000 values, more than the file",
        ),
        (lambda: torch.eye(3).to_sparse(), "is a sparse"),
        (quantised, "is quantised"),
        (lambda: torch.zeros(2, dtype=torch.complex64), "holds complex numbers"),
        (lambda: torch.zeros(2, device="meta"), "has a shape and no values"),
    ],
    ids=["expanded", "sparse", "quantised", "complex", "meta"],
)
# torch itself warns about old kinds of tensors, and that it checks sparse ones
@pytest.mark.filterwarnings("ignore:.*(quantize|TypedStorage|sparse)")
def test_tensors_that_are_no_weights_are_refused(make: Callable[[], Tensor], reason: str) -> None:
    data = saved({**STATE, "fc.weight": make()})
    with pytest.raises(
        hookviz.WeightsError, match=rf"^odd\.pth can't be used: fc\.weight {reason}"
    ):
        checkpoints.read(data, "odd.pth")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([STATE], "holds list, not a state dict"),
        (torch.zeros(3), "holds Tensor, not a state dict"),
        ({}, "holds no tensors with names; it holds nothing"),
        ({"epoch": 3, "lr": 0.1}, "holds no tensors with names; it holds epoch, lr"),
        ({"optimizer": ADAM}, "holds no tensors with names; it holds optimizer"),
    ],
)
def test_pickles_without_a_state_dict(value: Any, reason: str) -> None:
    with pytest.raises(hookviz.WeightsError, match=rf"odd\.pth {reason}"):
        checkpoints.read(saved(value), "odd.pth")


def test_endless_wrappings_end() -> None:
    nested: dict[str, Any] = STATE
    for _ in range(200):
        nested = {"model": nested, "net": nested}  # shared, so 2 to the power of 200 paths
    with pytest.raises(hookviz.WeightsError, match="no tensors with names"):
        checkpoints.read(saved(nested))


@pytest.mark.parametrize("write", [saved, old_format])
def test_a_pickle_of_very_many_things_is_refused_before_it_is_built(
    write: Callable[[Any], bytes],
) -> None:
    with pytest.raises(hookviz.WeightsError, match="more tensors than any network"):
        checkpoints.read(write([[] for _ in range(2_000_000)]))


def test_no_such_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(hookviz.WeightsError, match=r'There is no checkpoint .*none\.pth.*"random"'):
        checkpoints.read(tmp_path / "none.pth")
    with pytest.raises(hookviz.WeightsError, match="it is a folder"):
        checkpoints.read(tmp_path)
    with pytest.raises(hookviz.WeightsError, match="File name too long"):
        checkpoints.read(tmp_path / ("x" * 3000))


@pytest.mark.parametrize("write", [saved, old_format, safetensors.torch.save])
def test_damage_anywhere_is_an_error_of_ours_or_harmless(write: Callable[[Any], bytes]) -> None:
    whole = write(STATE)
    rng = random.Random(5)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.25:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            checkpoints.read(bytes(damaged))
        except hookviz.WeightsError:
            refused += 1
    assert refused > 400
