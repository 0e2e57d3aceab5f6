"""The rows of docs/threats.md that no other test shows: bombs, lies, hostile names and links."""

import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urljoin

import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from torch.serialization import MAGIC_NUMBER, PROTOCOL_VERSION

import hookviz
from hookviz.models.checkpoints.files import read_state_dict
from hookviz.models.checkpoints.pickle_check import ALLOWED_GLOBALS
from hookviz.serving.short_links import short_links
from hookviz.ui.presenting.known_link import for_the_class, known_part, parameters
from hookviz.ui.presenting.presenter import read_slides
from hookviz.ui.serving import go_route
from scripts.servers import ROOT
from tests.hostile_checkpoints import called, number, saved, storage, tensor, text, with_weights
from tests.images.test_reading import chunk, png, tiff
from tests.pictures import encoded, picture

# ── bombs ──────────────────────────────────────────────────────────────────────────────────────


class Measured(NamedTuple):
    """What reading a file took."""

    name: str
    megabytes: int
    seconds: float
    said: str


def frame(number: int, width: int, height: int) -> bytes:
    """The chunk before a frame of an animated PNG."""
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, 1, 1, 0, 0))


def webp_frame(side: int) -> bytes:
    """An animated WebP of 8×8 pixels whose one frame says that it has `side` × `side`."""
    still = encoded(picture(width=8, height=8), "WEBP", lossless=True)[12:]
    size = (side - 1).to_bytes(3, "little")
    body = bytes(6) + size + size + bytes(4) + still
    canvas = (7).to_bytes(3, "little")
    parts = b"VP8X" + struct.pack("<II", 10, 2) + canvas + canvas
    parts += b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    parts += b"ANMF" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WEBP" + parts


def gif_that_clears(side: int) -> bytes:
    """A GIF of 1×1 pixels with a frame of `side` × `side`, to be cleared away after it is shown."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes(6)
    clears = b"!\xf9\x04" + bytes([2 << 2]) + bytes(4)
    return screen + clears + b"," + struct.pack("<4HB", 0, 0, side, side, 0) + b"\x02\x00;"


def bombs() -> dict[str, bytes]:
    """Small files whose frames, strips or texts want memory or time; test_images.py has more."""
    zeros = zlib.compress(bytes(10**8), 9)
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**6), 9))
    frames = io.BytesIO()
    small = [Image.new("P", (1, 1), shade % 2) for shade in range(3000)]
    small[0].save(frames, "GIF", save_all=True, append_images=small[1:], duration=1)
    long = bytearray(tiff(bytes(99), 5, 5, (8,), 1))
    directory = struct.unpack_from("<I", long, 4)[0]
    count = struct.unpack_from("<H", long, directory)[0]
    struct.pack_into("<I", long, directory + 2 + 12 * count, directory)  # the next one is itself
    many = bytearray(tiff(bytes(99), 5, 5, (8,), 1))
    struct.pack_into("<I", many, directory + 2 + 12 * 5 + 4, 2**31)  # the sixth says so many values
    return {
        "PNG data": png([], 1, 8, 0, chunk(b"IDAT", zeros), height=1),
        "PNG texts": png([b"\0\0\0"], 1, 8, 2, text * 2000),
        "PNG frames": png(
            [b"\0\0\0"], 1, 8, 2, chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0)) + frame(0, 1, 1)
        ),
        "PNG frame": png(
            [b"\0\0\0"], 1, 8, 2, chunk(b"acTL", struct.pack(">II", 1, 0)) + frame(0, 40000, 40000)
        ),
        "GIF frames": frames.getvalue(),
        "GIF clears": gif_that_clears(13000),
        "WebP frame": webp_frame(16384),
        "TIFF strip": tiff(zlib.compress(bytes(10**8)), 5, 5, (8,), 1, compression=8),
        "TIFF circle": bytes(long),
        "TIFF values": bytes(many),
    }


# Each part's memory is measured by itself. `getrusage` would not do: it begins at the peak of the
# process that started this one.
MEASURED = """
import pickle, sys, time
from hookviz.models.checkpoints.files import read_state_dict
from hookviz.errors import HookVizError
from hookviz.images.reading import decode

def peak():
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0])

def work(data):
    if sys.argv[1] == "image":
        decode(data, "bomb.img")
        return "decoded"
    return f"read {sum(tensor.nbytes for tensor in read_state_dict(data, 'odd.pth').values())}"

for name, data in pickle.load(sys.stdin.buffer).items():
    open("/proc/self/clear_refs", "w").write("5")
    before, start = peak(), time.perf_counter()
    try:
        said = work(data)
    except HookVizError as error:
        said = str(error)
    print(name, (peak() - before) // 1024, round(time.perf_counter() - start, 1), said, sep="|")
"""


def measured(kind: str, files: dict[str, bytes], **environment: str) -> Iterator[Measured]:
    """What became of each file in another process, with megabytes and seconds."""
    if sys.platform != "linux":
        pytest.skip("memory is measured on Linux")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MEASURED, kind],
        input=pickle.dumps(files),
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=120,
    )
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(files)
    for line in lines:
        name, megabytes, seconds, said = line.split("|", 3)
        yield Measured(name, int(megabytes), float(seconds), said)


def test_frames_and_hidden_parts_of_images_take_no_memory() -> None:
    for file in measured("image", bombs()):
        assert file.said == "decoded" or "'bomb.img'" in file.said, file
        assert file.megabytes < 90, file  # Pillow allows 64 MB of texts
        assert file.seconds < 5, file


# ── checkpoints ────────────────────────────────────────────────────────────────────────────────


def full(values: int, shape: int, stride: int = 1) -> bytes:
    """A tensor that says that its storage has so many values, and takes so many of them."""
    return tensor(storage(values), 0, shape, stride)


def archive(value: bytes, held: int = 16, method: int = zipfile.ZIP_STORED) -> bytes:
    """A file as torch.save writes it today, with `held` bytes of values."""
    return saved(with_weights(value), held // 4, method)


def old_format(value: bytes, filled: list[str], held: bytes = b"") -> bytes:
    """A file as torch.save wrote it before 2020."""
    system = {"little_endian": True, "protocol_version": 1001, "type_sizes": {}}
    heads = [pickle.dumps(part, 2) for part in (MAGIC_NUMBER, PROTOCOL_VERSION, system)]
    described = b"\x80\x02" + with_weights(value.replace(b"tQ", b"NtQ")) + b"."
    return b"".join(heads) + described + pickle.dumps(filled, 2) + held


def lying_directory() -> bytes:
    """A zip whose table of contents says 16 bytes where 300 million come out."""
    whole = bytearray(archive(full(4, 4), 300_000_000, zipfile.ZIP_DEFLATED))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = -1
        while (at := whole.find(mark, at + 1)) >= 0:
            if struct.unpack_from("<I", whole, at + place) == (300_000_000,):
                struct.pack_into("<I", whole, at + place, 16)
    return bytes(whole)


def overlapping() -> bytes:
    """A zip whose 500 entries are all the same megabyte of the file."""
    buffer = io.BytesIO(archive(full(250_000, 250_000), 1_000_000))
    with zipfile.ZipFile(buffer, "a") as file:
        info = file.getinfo("x/data/0")
        file.filelist += [info] * 500
        file._didModify = True  # type: ignore[attr-defined]
    return buffer.getvalue()


MUCH = 10**8
MANY = number(MUCH) + b"\x85"
HOSTILE: dict[str, bytes] = {
    "a byte array": archive(called("builtins.bytearray", MANY)),
    "a byte array of Python 2": archive(called("__builtin__.bytearray", MANY)),
    "a tensor without values": archive(called("torch.Tensor", MANY)),
    "an old tensor": archive(called("torch.FloatTensor", MANY)),
    "a storage without values": archive(called("torch.storage.UntypedStorage", MANY)),
    "a tensor spread out and copied": archive(
        called(
            "torch._utils._rebuild_device_tensor_from_cpu_tensor",
            b"(" + full(4, MUCH, 0) + b"ctorch\nfloat64\n" + text("cpu") + b"\x89t",
        )
    ),
    "a storage larger than the file": archive(full(10**11, 10**11)),
    "a tensor larger than its storage": archive(full(4, 10**11)),
    "a tensor spread out": archive(full(4, 10**11, 0)),
    "an unfilled storage, larger than the file": old_format(full(MUCH, MUCH), []),
    "a byte array after the state dict": old_format(full(4, 4), ["0"]).replace(
        pickle.dumps(["0"], 2), b"\x80\x02" + called("builtins.bytearray", MANY) + b"."
    ),
    "entries over each other": overlapping(),
}  # fmt: skip


def test_checkpoints_take_no_more_memory_than_they_hold() -> None:
    files = {**HOSTILE, "a table of contents that lies": lying_directory()}
    for file in measured("checkpoint", files):
        assert file.said.startswith("odd.pth") or file.said == "read 16", file
        assert file.said.startswith("odd.pth") or file.name not in HOSTILE, file
        assert file.megabytes < 40, file
        assert file.seconds < 5, file


def test_values_that_a_checkpoint_leaves_out_are_zero() -> None:
    """And not what somebody else left in that memory."""
    data = old_format(full(5000, 5000), [], bytes(20_000))
    for _ in range(20):
        torch.full((5000,), 7.0)  # what somebody else leaves
        weight = read_state_dict(data, "odd.pth")["weight"]
        assert not weight.any()


def test_nothing_else_that_torch_calls_for_a_file_is_unknown_here() -> None:
    """A newer torch may let files call more; each such thing has to be looked at once."""
    from torch._weights_only_unpickler import _get_allowed_globals  # noqa: PLC0415

    harmless = {
        "collections.OrderedDict", "collections.Counter", "torch.nn.parameter.Parameter",
        "torch.serialization._get_layout", "torch.Size", "torch.device",
        "builtins.complex", "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state", "torch._utils._rebuild_qtensor",
        "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_sparse_tensor",
        "torch._utils._rebuild_meta_tensor_no_storage", "torch._tensor._rebuild_from_type_v2",
    }  # fmt: skip
    unknown = {
        name
        for name, value in _get_allowed_globals().items()
        if callable(value)
        and name not in harmless
        and ALLOWED_GLOBALS.fullmatch(" ".join(name.rsplit(".", 1)))
    }
    assert unknown == set()


def lying_header(header: Any, held: bytes = bytes(64), length: int | None = None) -> bytes:
    """A safetensors file with that header before its values."""
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(written) if length is None else length
    return size.to_bytes(8, "little") + written + held


def entry(shape: list[int], start: int, end: int, kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [start, end]}


LIES: dict[str, bytes] = {
    "longer than the file": lying_header({"w": entry([4], 0, 16)}, length=10**6),
    "longer than any file": lying_header({"w": entry([4], 0, 16)}, length=2**39),
    "shorter than it is": lying_header({"w": entry([16], 0, 64)}, length=9),
    "values beyond the end": lying_header({"w": entry([32], 0, 128)}),
    "values before the start": lying_header({"w": entry([16], -64, 0)}),
    "an end before the start": lying_header({"w": entry([16], 64, 0)}),
    "values that two tensors share": lying_header(
        {"v": entry([16], 0, 64), "w": entry([16], 0, 64)}
    ),
    "a gap": lying_header({"v": entry([4], 0, 16), "w": entry([4], 48, 64)}),
    "values that no tensor has": lying_header({"w": entry([4], 0, 16)}),
    "a shape of other size": lying_header({"w": entry([10**11], 0, 64)}),
    "a shape that overflows": lying_header({"w": entry([2**32, 2**32, 16], 0, 64)}),
    "a negative shape": lying_header({"w": entry([-4, -4], 0, 64)}),
    "an unknown type": lying_header({"w": entry([16], 0, 64, "X99")}),
    "no shape": lying_header({"w": {"dtype": "F32", "data_offsets": [0, 64]}}),
    "a list": lying_header(b"{[]}"),
    "deep nesting": lying_header(b'{"a":' * 200_000),
    "no text": lying_header(b'{"\xff\xfe":1}'),
    "nothing": lying_header({}, b""),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_safetensors_header_is_refused(lie: str) -> None:
    with pytest.raises(hookviz.WeightsError, match=r"^odd\.safetensors"):
        read_state_dict(LIES[lie], "odd.safetensors")


# ── links and slides that others made ──────────────────────────────────────────────────────────


def test_a_short_link_leads_to_this_page_alone() -> None:
    client = TestClient(Starlette(routes=[go_route.route()]), follow_redirects=False)
    for hostile in (
        "?next=//evil.example&channel=3",
        "?model=//evil.example/%0d%0aSet-Cookie:%20a=b",
        "?layer=\r\nLocation: https://evil.example",
        "?lens=%26redirect%3Dhttps://evil.example#https://evil.example",
    ):
        query = for_the_class(known_part(hostile))
        answer = client.get(f"{go_route.PATH}/{short_links().code_for(query, 'eve')}")
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers
        target = urljoin("https://here.example/lab/hookviz/go/abcde", answer.headers["location"])
        assert target.partition("?")[0] == "https://here.example/lab/"
        assert {name for name, _ in parse_qsl(target.partition("?")[2])} <= parameters()


def test_slides_made_of_anything_are_read_or_refused_in_words() -> None:
    rng = random.Random(7)
    good = json.dumps({"hookviz-slides": 1, "slides": [{"title": "x", "query": "channel=3"}] * 3})
    read = 0
    for _ in range(2000):
        text = list(good)
        for _ in range(rng.randint(1, 6)):
            text[rng.randrange(len(text))] = rng.choice('{}[]",:\\u0d8=&%?<1eE\0\ud800é')
        try:
            slides = read_slides("".join(text))
        except hookviz.HookVizError:
            continue
        read += 1
        for slide in slides:
            assert {name for name, _ in parse_qsl(slide.query)} <= parameters()
            slide.title.encode()
    assert 0 < read < 2000
