"""What torch's reader would do for a hostile pickle, found before it does it."""

import io
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable

import pytest
import torch

import hookviz
from hookviz.models.checkpoints.reading import read_state_dict

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTO, _STOP, _ITEM = b"\x80\x02", b".", b"s"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


def called(name: str, arguments: bytes) -> bytes:
    module, _, function = name.rpartition(".")
    return b"c" + f"{module}\n{function}\n".encode() + arguments + b"R"


def storage(count: int, key: str = "0") -> bytes:
    return (
        b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu")
        + number(count) + b"tQ"
    )  # fmt: skip


def tensor(held: bytes, offset: int, size: int, stride: int) -> bytes:
    shape = number(size) + b"\x85" + number(stride) + b"\x85"
    hooks = b"\x89" + called("collections.OrderedDict", b")")
    arguments = b"(" + held + number(offset) + shape + hooks + b"t"
    return called("torch._utils._rebuild_tensor_v2", arguments)


def with_weights(value: bytes) -> bytes:
    return b"}" + text("weight") + value + _ITEM


def saved(body: bytes, count: int = 4) -> bytes:
    """A file of torch.save's format with that pickle, and one storage of so many floats."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", _PROTO + body + _STOP)
        archive.writestr("x/byteorder", "little")
        archive.writestr("x/data/0", bytes(4 * count))
        archive.writestr("x/version", "3")
    return file.getvalue()


def old_format(body: bytes, count: int = 4) -> bytes:
    head = b"".join(pickle.dumps(part, 2) for part in (_MAGIC, 1001, {"little_endian": True}))
    values = pickle.dumps(["0"], 2) + struct.pack("<q", count) + bytes(4 * count)
    return head + _PROTO + body.replace(b"tQ", b"NtQ") + _STOP + values


def nested_key() -> bytes:
    return b"}" + b")" + b"\x85" * 100_000 + number(1) + _ITEM


def colliding_keys() -> bytes:
    keys = b"".join(number(place * (2**61 - 1)) + b"N" for place in range(1, 60_000))
    return b"}(" + keys + b"u"


def set_of_numbers() -> bytes:
    return with_weights(called("builtins.set", b"](K\x01K\x02e\x85"))


def encoded() -> bytes:
    return with_weights(called("_codecs.encode", text("xn--") + text("punycode") + b"\x86"))


def one_list_many_times() -> bytes:
    pair = b"]" + number(1) + b"a" + number(2) + b"a"
    listed = b"](" + pair * 2 + b"eq\x07\x85"
    again = called("collections.OrderedDict", listed) + b"0"
    return again + called("collections.OrderedDict", b"h\x07\x85")


def rows_of_a_tensor() -> bytes:
    return with_weights(called("collections.Counter", tensor(storage(4), 0, 4, 0) + b"\x85"))


def two_sizes_of_one_storage() -> bytes:
    return with_weights(storage(4) + b"0" + tensor(storage(5000), 4, 4996, 1))


def by_state() -> bytes:
    shape = number(4996) + b"\x85" + number(1) + b"\x85"
    state = b"(" + storage(4) + number(4) + shape + b"t"
    return with_weights(tensor(storage(4), 0, 4, 1) + state + b"b")


HOSTILE: tuple[Callable[[], bytes], ...] = (
    lambda: with_weights(tensor(storage(4), 4, 4996, 1)),
    lambda: with_weights(tensor(storage(4), 0, 3, 2)),
    nested_key,
    colliding_keys,
    set_of_numbers,
    encoded,
    one_list_many_times,
    rows_of_a_tensor,
    two_sizes_of_one_storage,
    by_state,
)


@pytest.mark.parametrize("write", [saved, old_format])
@pytest.mark.parametrize("body", HOSTILE)
def test_what_would_do_harm_is_refused_before_torch_reads_it(
    body: Callable[[], bytes],
    write: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("torch reads it")

    monkeypatch.setattr(torch, "load", read)
    with pytest.raises(hookviz.WeightsError):
        read_state_dict(write(body()))


@pytest.mark.parametrize("write", [saved, old_format])
def test_a_tensor_within_its_storage_is_read(write: Callable[[bytes], bytes]) -> None:
    read = read_state_dict(write(with_weights(tensor(storage(4), 1, 3, 1))))
    assert torch.equal(read["weight"], torch.zeros(3))


@pytest.mark.parametrize("is_zip", [True, False])
def test_what_training_scripts_keep_is_read(is_zip: bool) -> None:
    weights = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(weights.parameters())
    weights(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    base = torch.arange(24.0)
    state_dict: dict[str, torch.Tensor] = {
        **weights.state_dict(),
        "view": base[4:16].view(3, 4).t(),
        "tied": base,
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "none": torch.empty(0, 3),
        "count": torch.tensor(3),
    }
    kept = {
        "model": state_dict,
        "optimizer": optimizer.state_dict(),
        "history": OrderedDict([(1, 0.5), (2, None)]),
        "milestones": Counter({30: 1}),
        "args": {"lr": 0.1, "size": torch.Size([3, 2]), "type": torch.float16, "betas": (0.9, 1)},
    }
    file = io.BytesIO()
    torch.save(kept, file, _use_new_zipfile_serialization=is_zip)
    read = read_state_dict(file.getvalue())
    assert list(read) == list(state_dict)
    assert all(torch.equal(read[name], value) for name, value in state_dict.items())
