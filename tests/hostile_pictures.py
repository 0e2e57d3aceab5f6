"""Make small pictures that take all memory, or minutes, of whoever reads them plainly."""

import struct
import zlib
from io import BytesIO

import numpy as np
from PIL import Image


def pictures() -> dict[str, bytes]:
    """Return the files by what is wrong with them."""
    return {
        "a float TIFF of one row": float_row(),
        "a profile of one step 60,000 times": endless_profile(),
        "a TIFF of millions of strips": many_strips(),
        "a PNG of a million chunks": many_chunks(),
        "a GIF of junk": junk_gif(),
        "a JPEG of a hundred scans": many_scans(),
        "a PNG of 40 million numbers of 16 bits": deep(),
    }


def float_row(width: int = 99_000_000) -> bytes:
    """A TIFF of one row of 32-bit floats, deflated: 0.4 MB that become 4 GB of float64 and more."""
    squeezer = zlib.compressobj(9)
    zeros = bytes(4_000_000)
    rows = b"".join(squeezer.compress(zeros) for _ in range(width * 4 // len(zeros)))
    rows += squeezer.flush()
    return _tiff(width, 1, [(258, 3, 1, 32), (259, 3, 1, 8), (339, 3, 1, 3)], rows)


def endless_profile() -> bytes:
    """A PNG whose colour profile has a transform of 60,000 steps, all of them the same matrix."""
    steps = 60_000
    matrix = b"matf\0\0\0\0" + struct.pack(">HH", 3, 3) + struct.pack(">12f", *([1, 0, 0] * 4))
    table = 16 + 8 * steps
    transform = b"mpet\0\0\0\0" + struct.pack(">HHI", 3, 3, steps)
    transform += struct.pack(">II", table, len(matrix)) * steps + matrix
    tags = b"".join(
        tag + struct.pack(">II", 128 + 4 + 24, len(transform)) for tag in (b"A2B0", b"D2B0")
    )
    body = struct.pack(">I", 2) + tags + transform
    header = bytearray(128)
    header[0:4] = struct.pack(">I", 128 + len(body))
    header[8:12] = b"\x04\x30\0\0"
    header[12:24] = b"scnrRGB XYZ "
    header[36:40] = b"acsp"
    header[68:80] = struct.pack(">III", 0xF6D6, 0x10000, 0xD32D)
    buffer = BytesIO()
    Image.new("RGB", (64, 64), (9, 99, 199)).save(buffer, "PNG", icc_profile=bytes(header) + body)
    return buffer.getvalue()


def deep(side: int = 6_300) -> bytes:
    """A gray PNG of 16 bits, all zeros: 0.4 MB whose levels take a gigabyte to be found."""
    squeezer = zlib.compressobj(1)
    row = bytes(1 + 2 * side)
    rows = b"".join(squeezer.compress(row) for _ in range(side)) + squeezer.flush()
    header = struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def many_strips(strips: int = 6_000_000) -> bytes:
    """A TIFF that names six million strips of one row, all at the same place."""
    return _tiff(1, strips, [(258, 3, 1, 8), (259, 3, 1, 1)], b"\0", strips)


def many_chunks() -> bytes:
    """A PNG with a million empty chunks before its pixels."""
    buffer = BytesIO()
    Image.new("L", (8, 8)).save(buffer, "PNG")
    data = buffer.getvalue()
    empty = struct.pack(">I", 0) + b"teSt" + struct.pack(">I", zlib.crc32(b"teSt"))
    return data[:33] + empty * 1_000_000 + data[33:]


def junk_gif() -> bytes:
    """A GIF whose blocks are followed by 40 MB that are none."""
    buffer = BytesIO()
    Image.new("L", (8, 8)).save(buffer, "GIF")
    return buffer.getvalue()[:-1] + b"\x01" * 40_000_000 + b";"


def many_scans() -> bytes:
    """A JPEG of 16 million pixels that are gone through a hundred times."""
    buffer = BytesIO()
    pixels = np.random.default_rng(1).integers(0, 255, (4000, 4000), np.uint8)
    Image.fromarray(pixels).save(buffer, "JPEG", progressive=True, quality=1)
    data = buffer.getvalue()
    first = data.index(b"\xff\xda")
    second = data.index(b"\xff\xda", first + 2)
    return data[:second] + data[first:second] * 99 + data[second:]


def _tiff(
    width: int, height: int, more: list[tuple[int, int, int, int]], rows: bytes, strips: int = 1
) -> bytes:
    fields = [(256, 4, 1, width), (257, 4, 1, height), *more, (262, 3, 1, 1), (277, 3, 1, 1)]
    end = 8 + 2 + 12 * (len(fields) + 3) + 4
    places, sizes = end, end + 4 * strips
    start = end + 8 * strips if strips > 1 else end
    fields += [
        (273, 4, strips, places if strips > 1 else start),
        (278, 4, 1, 1),
        (279, 4, strips, sizes if strips > 1 else len(rows)),
    ]
    packed = b"".join(
        struct.pack("<HHI", tag, kind, count) + struct.pack("<I", value)
        for tag, kind, count, value in sorted(fields)
    )
    lists = (
        struct.pack("<I", start) * strips + struct.pack("<I", len(rows)) * strips
        if strips > 1
        else b""
    )
    return b"II*\0" + struct.pack("<IH", 8, len(fields)) + packed + bytes(4) + lists + rows
