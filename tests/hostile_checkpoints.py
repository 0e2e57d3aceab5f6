"""Write small checkpoints that show memory of others, end the process, or take memory and time."""

import io
import pickle
import struct
import zipfile
from collections.abc import Callable

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


def saved(body: bytes, count: int = 4, method: int = zipfile.ZIP_STORED) -> bytes:
    """A file of torch.save's format with that pickle, and one storage of so many floats."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
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
    again = called("collections.OrderedDict", b"h\x07\x85")
    return with_weights(called("collections.OrderedDict", listed) + again + b"\x86")


def rows_of_a_tensor() -> bytes:
    return with_weights(called("collections.Counter", tensor(storage(4), 0, 4, 0) + b"\x85"))


def two_sizes_of_one_storage() -> bytes:
    return with_weights(storage(4) + tensor(storage(5000), 4, 4996, 1) + b"\x86")


def by_state() -> bytes:
    shape = number(4996) + b"\x85" + number(1) + b"\x85"
    state = b"(" + storage(4) + number(4) + shape + b"t"
    return with_weights(tensor(storage(4), 0, 4, 1) + state + b"b")


def one_record_by_many_names() -> bytes:
    """Names that differ in capitals, which torch reads one record for again and again."""
    return (
        b"}"
        + b"".join(
            text(name) + tensor(storage(4, key=name), 0, 4, 1) + _ITEM
            for name in ("ab", "Ab", "aB")
        )
    )  # fmt: skip


def nested_value() -> bytes:
    return with_weights(b")" + b"\x85" * 101)


def nested_lists() -> bytes:
    return with_weights(b"]" * 102 + b"a" * 101)


def nested_later() -> bytes:
    """Lists of which each is put into another before it is filled."""
    return with_weights(b"]q\x01]q\x02ah\x02]a\x86")


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
    one_record_by_many_names,
    nested_value,
    nested_lists,
    nested_later,
)


def checkpoints() -> list[bytes]:
    """Return all of them, in torch's format of today and the old one."""
    return [write(body()) for body in HOSTILE for write in (saved, old_format)]
