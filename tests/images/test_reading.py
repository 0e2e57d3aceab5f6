"""Files of every format, depth and colour space, good and bad, made on the spot."""

import os
import pickle
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageCms

from hookviz.errors import ImageError
from hookviz.images import decoding, reading
from hookviz.images.reading import decode, read
from hookviz.settings import Settings
from hookviz.types import InputImage

Array = NDArray[Any]
RED = (255, 0, 0)
LOSSLESS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "WEBP": {"lossless": True, "exact": True},
    "BMP": {},
    "TIFF": {"compression": "tiff_deflate"},
}


def noise(height: int = 13, width: int = 17, channels: int = 3) -> Array:
    return np.random.default_rng(7).integers(0, 256, (height, width, channels), dtype=np.uint8)


def smooth(height: int = 24, width: int = 32) -> Array:
    rows, columns = np.mgrid[0:height, 0:width]
    ramps = (rows * 255 / height, columns * 255 / width, 255 - columns * 255 / width)
    return np.stack(ramps, axis=-1).astype(np.uint8)


def encoded(image: Image.Image | Array, kind: str, **options: Any) -> bytes:
    picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
    buffer = BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    rows: list[bytes],
    width: int,
    bits: int,
    colour_type: int,
    extra: bytes = b"",
    *,
    height: int = 0,
) -> bytes:
    """A PNG written by hand (W3C PNG specification, section 11), each row with filter 0."""
    header = struct.pack(">IIBBBBB", width, height or len(rows), bits, colour_type, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", body)
        + chunk(b"IEND", b"")
    )


def tiff(
    data: bytes,
    width: int,
    height: int,
    bits: tuple[int, ...],
    photometric: int,
    *,
    order: str = "<",
    **tags: int,
) -> bytes:
    """A TIFF written by hand, of one strip per plane (TIFF 6.0, section 2).

    With ``compression=8`` the strips are deflated.
    """
    planes = len(bits) if tags.get("planar") == 2 else 1
    length = len(data) // planes
    strips = [data[plane * length : plane * length + length] for plane in range(planes)]
    if tags.get("compression") == 8:
        strips = [zlib.compress(strip) for strip in strips]
    offsets = [8 + sum(map(len, strips[:plane])) for plane in range(planes)]
    data = b"".join(strips)
    numbers = {"sample_format": 339, "planar": 284, "tile_width": 322, "tile_length": 323}
    numbers["compression"] = 259
    entries: dict[int, tuple[str, tuple[int, ...]]] = {
        256: ("I", (width,)),
        257: ("I", (height,)),
        258: ("H", bits),
        259: ("H", (1,)),
        262: ("H", (photometric,)),
        273: ("I", tuple(offsets)),
        277: ("H", (len(bits),)),
        278: ("I", (height,)),
        279: ("I", tuple(map(len, strips))),
    }
    for name, value in tags.items():
        entries[numbers[name]] = ("H", (value,))
    if "tile_width" in tags:
        entries[324], entries[325] = entries.pop(273), entries.pop(279)
    start = 8 + len(data)
    spill_at = start + 2 + 12 * len(entries) + 4
    directory, spill = struct.pack(order + "H", len(entries)), b""
    for tag, (code, values) in sorted(entries.items()):
        packed = struct.pack(f"{order}{len(values)}{code}", *values)
        kind = {"H": 3, "I": 4}[code]
        if len(packed) > 4:
            place = struct.pack(order + "I", spill_at + len(spill))
            spill += packed
        else:
            place = packed.ljust(4, b"\0")
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + place
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(order + "I", start) + data + directory + b"\0" * 4 + spill


@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_formats_give_the_exact_pixels(kind: str) -> None:
    image = decode(encoded(noise(), kind, **LOSSLESS[kind]), "n.img")
    np.testing.assert_array_equal(image.pixels, noise())
    assert (image.height, image.width, image.name) == (13, 17, "n.img")
    colours = np.array([[RED, (0, 255, 0)], [(0, 0, 255), (9, 8, 7)]], dtype=np.uint8)
    np.testing.assert_array_equal(decode(encoded(colours, "GIF")).pixels, colours)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {"quality": 95}),
        ("JPEG", {"quality": 95, "progressive": True}),
        ("AVIF", {"quality": 95}),
        ("WEBP", {"quality": 95}),
    ],
)
def test_lossy_formats_come_close(kind: str, options: dict[str, Any]) -> None:
    pixels = decode(encoded(smooth(), kind, **options)).pixels
    assert np.abs(pixels.astype(int) - smooth()).mean() < 6


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF", "AVIF"])
def test_an_animation_gives_its_first_frame(kind: str) -> None:
    red, blue = Image.new("RGB", (16, 16), RED), Image.new("RGB", (16, 16), (0, 0, 255))
    options = LOSSLESS.get(kind, {"quality": 100} if kind == "AVIF" else {})
    data = encoded(red, kind, save_all=True, append_images=[blue, red], **options)
    with Image.open(BytesIO(data)) as written:
        assert getattr(written, "n_frames", 1) == 3
    assert np.abs(decode(data).pixels.astype(int) - RED).max() <= 3


def test_pixels_are_read_only_and_the_digest_is_of_shape_and_pixels() -> None:
    image = decode(encoded(noise(), "PNG"), "a.png")
    assert not image.pixels.flags.writeable
    assert image.pixels.dtype == np.uint8
    assert len(image.digest) == 32
    assert decode(encoded(noise(), "BMP"), "b.bmp").digest == image.digest
    turned = noise().reshape(17, 13, 3)
    assert decode(encoded(turned, "PNG")).digest != image.digest
    for exif in (b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\x7f", b"Exif\0\0"):
        data = encoded(noise(), "PNG", exif=exif)  # which does not lose the picture
        np.testing.assert_array_equal(decode(data).pixels, noise())


# EXIF 2.32, tag 0x0112: which side of the picture the stored first row and first column are
UPRIGHT: dict[int, Callable[[Array], Array]] = {
    1: lambda stored: stored,
    2: lambda stored: stored[:, ::-1],
    3: lambda stored: stored[::-1, ::-1],
    4: lambda stored: stored[::-1],
    5: lambda stored: stored.transpose(1, 0, 2),
    6: lambda stored: np.rot90(stored, -1),
    7: lambda stored: stored[::-1, ::-1].transpose(1, 0, 2),
    8: lambda stored: np.rot90(stored, 1),
}


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG", "AVIF"])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_exif_orientation_is_carried_out(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored, options = (noise(), LOSSLESS[kind]) if kind in LOSSLESS else (smooth(), {"quality": 95})
    data, expected = (
        encoded(stored, kind, exif=exif.tobytes(), **options),
        UPRIGHT[orientation](stored),
    )
    pixels = decode(data).pixels
    assert pixels.shape == expected.shape
    off = np.abs(pixels.astype(int) - expected)
    assert off.mean() < 6 if kind not in LOSSLESS else not off.any()
    with Image.open(BytesIO(data)) as picture:  # which is left as it is
        np.testing.assert_array_equal(read(picture).pixels, pixels)
        assert kind == "TIFF" or picture.size == stored.shape[1::-1]
    wide = noise(3, 5).astype(">u2") * 257
    block = chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
    turned = decode(png([row.tobytes() for row in wide], 5, 16, 2, block)).pixels
    np.testing.assert_array_equal(turned, UPRIGHT[orientation](noise(3, 5)))


DEEP = np.arange(65536, dtype=">u2").reshape(256, 256)
FULL = (32767.5, 65535)  # the window of all that 16 bits can be
ROUNDED = np.rint(DEEP.astype(float) / 257).astype(np.uint8)


def grey(levels: Array) -> Array:
    return np.repeat(levels[:, :, None], 3, axis=2)


OPAQUE = np.full_like(DEEP, 65535)
COLOUR, ROUNDED_COLOUR = (np.stack([each, each[::-1], each.T], axis=-1) for each in (DEEP, ROUNDED))


@pytest.mark.parametrize(
    ("stored", "colour_type", "expected"),
    [
        (COLOUR, 2, ROUNDED_COLOUR),
        (np.dstack([COLOUR, OPAQUE]), 6, ROUNDED_COLOUR),
        (np.dstack([OPAQUE, DEEP]), 4, grey(ROUNDED)),  # faint, on black
        (np.dstack([DEEP, OPAQUE]), 4, grey(ROUNDED)),
    ],
)
def test_16_bit_rgb_png_is_rounded(stored: Array, colour_type: int, expected: Array) -> None:
    data = png([row.astype(">u2").tobytes() for row in stored], 256, 16, colour_type)
    window = FULL if colour_type == 4 else None
    pixels = read(data, background=(0, 0, 0), window=window).pixels
    np.testing.assert_array_equal(pixels, expected)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("planar", [1, 2])
@pytest.mark.parametrize("compression", [1, 8])
def test_16_bit_rgb_tiff_is_rounded(order: str, planar: int, compression: int) -> None:
    colour = COLOUR.astype(f"{order}u2")
    stored = colour if planar == 1 else colour.transpose(2, 0, 1)
    options = {"planar": planar, "compression": compression}
    data = tiff(stored.tobytes(), 256, 256, (16, 16, 16), 2, order=order, **options)
    allowed = 1 if planar == 2 and compression == 8 else 0  # libtiff gives high bytes only
    assert np.abs(decode(data).pixels.astype(int) - ROUNDED_COLOUR).max() <= allowed
    data = tiff(DEEP.astype(f"{order}u2").tobytes(), 256, 256, (16,), 1, order=order, planar=planar)
    np.testing.assert_array_equal(read(data, window=FULL).pixels, grey(ROUNDED))


def test_grey_tiff_where_zero_is_white_or_of_12_or_32_bits() -> None:
    data = tiff(DEEP.astype("<u2").tobytes(), 256, 256, (16,), 0)
    np.testing.assert_array_equal(read(data, window=FULL).pixels, grey(255 - ROUNDED))
    packed = bytes([0x00, 0x0F, 0xFF, 0x80, 0x00, 0x10])  # of 12 bits: 0, 4095, 2048, 1
    for data, values in (
        (tiff(bytes([0, 100, 255]), 3, 1, (8,), 0), [255, 155, 0]),
        (tiff(packed, 4, 1, (12,), 1), [0, 255, 128, 1]),
    ):
        assert decode(data).pixels[0, :, 0].tolist() == values
    for numbers in ([0, 32896, 65535], [-1000, 0, 1000]):  # of 32 bits, which count as 16
        whole = np.array([numbers], dtype=np.int32)
        assert read(Image.fromarray(whole)).pixels[0, :, 0].tolist() == [0, 128, 255]


def test_a_tiff_with_missing_strips_is_refused() -> None:
    data = bytearray(tiff(bytes(300), 10, 10, (8, 8, 8), 2))
    rows = data.find(struct.pack("<HHI", 278, 4, 1))
    data[rows + 8 : rows + 12] = struct.pack("<I", 5)  # rows per strip, with one strip
    with pytest.raises(ImageError, match="parts of the picture are missing"):
        decode(bytes(data))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 100.0, 255.0], [0, 100, 255]),
        ([0.0, 257.0, 65535.0], [0, 1, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, float("nan"), 1.0], [0, 0, 255]),
        ([0.0, float("inf"), 1.0], [0, 255, 255]),
        ([-5.0, -5.0, -5.0], [0, 0, 0]),
        ([-3e38, 0.0, 3e38], [0, 128, 255]),
        ([float("nan")] * 3, [0, 0, 0]),
    ],
)
def test_float_grey(values: list[float], expected: list[int]) -> None:
    data = tiff(np.array(values, "<f4").tobytes(), 3, 1, (32,), 1, sample_format=3)
    pixels = decode(data).pixels[0, :, 0]
    assert np.abs(pixels.astype(int) - expected).max() <= (1 if expected[1] == 128 else 0)


def blended(colour: Array, alpha: Array, background: tuple[int, int, int]) -> Array:
    weight = alpha[..., None].astype(float) / 255
    return np.rint(colour * weight + np.array(background) * (1 - weight)).astype(np.uint8)


@pytest.mark.parametrize("background", [(255, 255, 255), (0, 0, 0), (12, 200, 99)])
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_alpha_is_blended_onto_the_background(kind: str, background: tuple[int, int, int]) -> None:
    rgba = noise(channels=4)
    pixels = decode(encoded(rgba, kind, **LOSSLESS[kind]), background=background).pixels
    np.testing.assert_array_equal(pixels, blended(rgba[..., :3], rgba[..., 3], background))
    levels = noise(channels=2)
    pixels = decode(encoded(Image.fromarray(levels, "LA"), "PNG"), background=background).pixels
    np.testing.assert_array_equal(pixels, blended(grey(levels[..., 0]), levels[..., 1], background))
    clear = Image.new("RGBA", (1, 1), (9, 9, 9, 0))
    assert read(clear).pixels.tolist() == [[[255, 255, 255]]]  # white unless said
    for three in (list(background), np.array(background, np.uint8), tuple(map(float, background))):
        assert read(clear, background=three).pixels.tolist() == [[[*background]]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "bits", "transparent", "expected"),
    [
        (b"\x50", 1, 1, [(0, 0, 0), RED, (0, 0, 0), RED]),
        (b"\x1b", 2, 1, [(0, 0, 0), RED, (170, 170, 170), (255, 255, 255)]),
        (b"\x0f\x30", 4, 15, [(0, 0, 0), RED, (51, 51, 51), (0, 0, 0)]),
        (b"\x00\x01\x02\x03", 8, 2, [(0, 0, 0), (1, 1, 1), RED, (3, 3, 3)]),
        (b"\x01\x00\x01\x01\x02\x00\xff\xff", 16, 257, [(1, 1, 1), RED, (2, 2, 2), (255,) * 3]),
    ],
)
def test_a_transparent_grey(
    row: bytes, bits: int, transparent: int, expected: list[tuple[int, ...]]
) -> None:
    data = png([row], 4, bits, 0, chunk(b"tRNS", struct.pack(">H", transparent)))
    window = FULL if bits == 16 else None
    np.testing.assert_array_equal(read(data, background=RED, window=window).pixels[0], expected)


def test_a_transparent_colour() -> None:
    block = chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))
    data = png([bytes([1, 2, 3, 1, 2, 4])], 2, 8, 2, block)
    assert decode(data, background=RED).pixels[0].tolist() == [[255, 0, 0], [1, 2, 4]]
    block = chunk(b"tRNS", struct.pack(">3H", 257, 514, 771))
    data = png([struct.pack(">6H", 257, 514, 771, 257, 514, 772)], 2, 16, 2, block)
    assert decode(data, background=RED).pixels[0].tolist() == [[255, 0, 0], [1, 2, 3]]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (b"\xff\x00", [[10, 20, 30], [255, 0, 0], [70, 80, 90]]),  # Pillow hands on one index
        (b"\xff\x80\x00", [[10, 20, 30], [147, 25, 30], [255, 0, 0]]),  # Pillow hands on bytes
    ],
)
def test_a_transparent_palette_entry(table: bytes, expected: list[list[int]]) -> None:
    picture = Image.new("P", (2, 1), 0)
    picture.putpalette([0, 0, 0, 1, 2, 3])
    picture.putpixel((1, 0), 1)
    data = encoded(picture, "GIF", transparency=0)
    assert decode(data, background=(7, 8, 9)).pixels[0].tolist() == [[7, 8, 9], [1, 2, 3]]
    palette = chunk(b"PLTE", bytes([10, 20, 30, 40, 50, 60, 70, 80, 90]))
    data = png([bytes([0, 1, 2])], 3, 8, 3, palette + chunk(b"tRNS", table))
    assert decode(data, background=RED).pixels[0].tolist() == expected


# sRGB's primaries relative to D50, as the ICC's own sRGB profile has them
SRGB = ((0.4360, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141))


def icc(space: bytes, connection: bytes, kind: bytes, tags: dict[bytes, bytes]) -> bytes:
    """A version 2 profile written by hand (ICC.1:2001-04, section 6)."""
    table, body = struct.pack(">I", len(tags)), b""
    start = 128 + 4 + 12 * len(tags)
    for signature, data in tags.items():
        table += struct.pack(">4sII", signature, start + len(body), len(data))
        body += data.ljust(-(-len(data) // 4) * 4, b"\0")
    header = struct.pack(
        ">I4sI4s4s4s12s4s28s", start + len(body), b"", 0x02400000, kind, space, connection,
        b"\x07\xe8\0\1\0\1\0\0\0\0\0\0", b"acsp", b"",
    ) + struct.pack(">3I", 0xF6D6, 0x10000, 0xD32D)  # fmt: skip
    return header.ljust(128, b"\0") + table + body


def xyz(*values: float) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(value * 65536) for value in values))


def gamma(value: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(value * 256))


def rgb_profile(*primaries: tuple[float, float, float]) -> bytes:
    tags = {b"wtpt": xyz(0.9642, 1, 0.8249)}
    for letter, primary in zip("rgb", primaries, strict=True):
        tags[f"{letter}XYZ".encode()] = xyz(*primary)
        tags[f"{letter}TRC".encode()] = gamma(2.2)
    return icc(b"RGB ", b"XYZ ", b"mntr", tags)


def cmyk_profile() -> bytes:
    """A printer whose "cyan" is red, whose black is black, and whose other inks don't show."""
    nodes = b""
    for corner in range(16):  # the first ink varies slowest
        lab = (138, 209, 198) if corner & 8 else (255, 128, 128)  # sRGB red, and paper white
        nodes += bytes((0, 128, 128) if corner & 1 else lab)
    identity = struct.pack(">9i", *(65536 * (place % 4 == 0) for place in range(9)))
    ramp = bytes(range(256))
    lut = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + identity + ramp * 4 + nodes + ramp * 3
    return icc(b"CMYK", b"Lab ", b"prtr", {b"wtpt": xyz(0.9642, 1, 0.8249), b"A2B0": lut})


SWAPPED = rgb_profile(SRGB[1], SRGB[0], SRGB[2])  # its red is sRGB's green
BRIGHT = icc(b"GRAY", b"XYZ ", b"mntr", {b"wtpt": xyz(0.9642, 1, 0.8249), b"kTRC": gamma(1)})
PRIMARIES = np.array([[RED, (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0)]], dtype=np.uint8)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "AVIF", "JPEG"])
def test_a_profile_is_converted_to_srgb(kind: str) -> None:
    blocks = np.repeat(np.repeat(PRIMARIES, 16, axis=0), 16, axis=1)
    options = LOSSLESS.get(kind, {"quality": 100, "subsampling": "4:4:4"})
    pixels = decode(encoded(blocks, kind, icc_profile=SWAPPED, **options)).pixels
    expected = blocks[:, :, [1, 0, 2]]
    assert np.abs(pixels.astype(int) - expected)[8, 8::16].max() <= 6


def test_a_profile_applies_to_palettes_and_below_alpha() -> None:
    rgba = np.dstack([PRIMARIES, np.array([[255, 0, 255, 255, 255]], dtype=np.uint8)])
    pixels = decode(encoded(rgba, "PNG", icc_profile=SWAPPED), background=(1, 2, 3)).pixels
    expected = PRIMARIES[:, :, [1, 0, 2]].copy()
    expected[0, 1] = (1, 2, 3)
    assert np.abs(pixels.astype(int) - expected).max() <= 1
    palette = Image.fromarray(PRIMARIES).quantize(5)
    pixels = decode(encoded(palette, "PNG", icc_profile=SWAPPED)).pixels
    assert np.abs(pixels.astype(int) - PRIMARIES[:, :, [1, 0, 2]]).max() <= 1


def test_a_grey_profile() -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    linear = levels / 255
    # IEC 61966-2-1: how sRGB encodes light
    coded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    for picture, window in ((levels, None), (levels.astype(np.uint16) * 257, FULL)):
        pixels = read(encoded(picture, "PNG", icc_profile=BRIGHT), window=window).pixels
        assert np.abs(pixels.astype(float) - grey(coded * 255)).max() <= 1.5


@pytest.mark.parametrize("profile", [b"rubbish", SWAPPED[:150], BRIGHT, cmyk_profile(), b""])
def test_a_broken_or_foreign_profile_is_ignored_and_logged(
    profile: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="hookviz"):
        pixels = decode(encoded(noise(), "PNG", icc_profile=profile), "odd.png").pixels
    np.testing.assert_array_equal(pixels, noise())
    assert ("odd.png" in caplog.text) == bool(profile)
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(noise(64, 64), "PNG", icc_profile=srgb)  # which changes nothing
    np.testing.assert_array_equal(decode(data).pixels, noise(64, 64))


@pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
def test_cmyk_without_a_profile(kind: str) -> None:
    inks = np.zeros((16, 64, 4), dtype=np.uint8)
    for block, ink in enumerate([(255, 0, 0, 0), (0, 128, 255, 0), (0, 0, 0, 200), (9, 99, 0, 50)]):
        inks[:, block * 16 : block * 16 + 16] = ink
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    pixels = decode(encoded(Image.fromarray(inks, "CMYK"), kind, **options)).pixels
    paper = 255 - inks.astype(float)
    expected = paper[..., :3] * paper[..., 3:] / 255
    assert np.abs(pixels - expected).max() <= (3 if kind == "JPEG" else 1)
    # Adobe's YCCK is YCbCr of the inverted inks; here it is written as four plain planes, and the
    # transform in Adobe's marker is then changed to say what they are.
    planes = (76, 85, 255, 200)  # YCbCr of red, and black ink 55
    picture = Image.new("CMYK", (16, 16), tuple(255 - level for level in planes))
    data = bytearray(encoded(picture, "JPEG", quality=100, subsampling=0))
    marker = data.find(b"Adobe")
    assert data[marker + 11] == 0
    data[marker + 11] = 2
    assert np.abs(decode(bytes(data)).pixels.astype(int) - (0, 200, 200)).max() <= 3


@pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
def test_cmyk_with_a_profile(kind: str) -> None:
    cyan = Image.new("CMYK", (16, 16), (255, 0, 0, 0))
    pixels = decode(encoded(cyan, kind, icc_profile=cmyk_profile())).pixels
    assert np.abs(pixels.astype(int) - RED).max() <= 8
    black = Image.new("CMYK", (16, 16), (0, 0, 0, 255))
    pixels = decode(encoded(black, kind, icc_profile=cmyk_profile())).pixels
    assert pixels.max() <= 3
    yellow = Image.new("CMYK", (16, 16), (0, 0, 255, 0))
    assert decode(encoded(yellow, kind, icc_profile=cmyk_profile())).pixels.min() >= 250


def test_lab_tiff() -> None:
    # CIE L*a*b* of sRGB red relative to D50 is (54.3, 80.8, 69.9); of middle grey (53.6, 0, 0)
    stored = struct.pack("BbbBbb", 138, 81, 70, 137, 0, 0)
    pixels = decode(tiff(stored, 2, 1, (8, 8, 8), 8)).pixels
    assert np.abs(pixels[0].astype(int) - [RED, (128, 128, 128)]).max() <= 6
    picture = Image.fromarray(smooth()).convert("YCbCr")
    assert np.abs(decode(encoded(picture, "TIFF")).pixels.astype(int) - smooth()).max() <= 3


def test_read_takes_paths_bytes_and_images(tmp_path: Path) -> None:
    path = tmp_path / "käse.png"
    data = encoded(noise(), "PNG")
    path.write_bytes(data)
    from_path = read(path)
    assert from_path.name == "käse.png"
    others = [read(str(path)), read(data), read(bytearray(data)), read(Image.fromarray(noise()))]
    assert {image.digest for image in others} == {from_path.digest}
    assert read(from_path) is from_path
    modes = "1 L LA La P PA RGB RGBA RGBa RGBX CMYK YCbCr LAB HSV I F I;16 I;16B"
    for mode in modes.split():
        picture = Image.new(mode, (3, 2))
        before = picture.tobytes()
        assert read(picture).pixels.shape == (2, 3, 3)
        assert (picture.mode, picture.size, picture.tobytes()) == (mode, (3, 2), before)


def test_read_names_the_nearest_files(tmp_path: Path) -> None:
    (tmp_path / "parrot.jpg").write_bytes(b"")
    with pytest.raises(ImageError, match=r"parot\.jpg.*Did you mean 'parrot\.jpg'"):
        read(tmp_path / "parot.jpg")
    with pytest.raises(ImageError, match="No name in that folder is like it"):
        read(tmp_path / "zzz")
    with pytest.raises(ImageError, match=r"is a folder, not an image; it holds 'parrot\.jpg'"):
        read(tmp_path)
    with pytest.raises(ImageError, match="its folder doesn't exist"):
        read(tmp_path / "no" / "where.png")
    with pytest.raises(ImageError, match=r"'parrot\.jpg' is empty"):
        read(tmp_path / "parrot.jpg")


def test_read_refuses_what_is_no_file_and_what_is_no_source(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)  # to open it would wait for ever
    with pytest.raises(ImageError, match=r"pipe\.png' is no ordinary file but a pipe"):
        read(pipe)
    link = tmp_path / "link.png"
    link.symlink_to(tmp_path / "gone.png")
    with pytest.raises(ImageError, match="is a link to a file that isn't there"):
        read(link)
    for source in (pipe, "a\0b.png", "x" * 5000):
        with pytest.raises(ImageError):
            read(source)
    with pytest.raises(ImageError, match="can't be read from 'int'"):
        read(5)  # type: ignore[arg-type]
    picture = Image.open(BytesIO(encoded(noise(), "PNG")))
    picture.close()
    with pytest.raises(ImageError):
        read(picture)


@pytest.mark.parametrize(
    "background", [5, None, "red", (1, 2), (1, 2, 300), (1.5, 2, 3), [[1], 2, 3]]
)
def test_a_wrong_background_is_told_as_such(background: Any, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    Image.fromarray(noise()).save(path)
    for source in (path, path.read_bytes(), Image.fromarray(noise())):
        with pytest.raises(ImageError, match=r"^The background .* is no colour; give red, green"):
            read(source, background=background)


WHOLE_FILES = {
    "PNG": encoded(noise(), "PNG"),
    "16-bit PNG": png([row.tobytes() for row in DEEP[:9, :9]], 9, 16, 0),
    "palette PNG": encoded(Image.fromarray(noise()).quantize(16), "PNG"),
    "JPEG": encoded(noise(), "JPEG"),
    "progressive JPEG": encoded(noise(), "JPEG", progressive=True),
    "CMYK JPEG": encoded(Image.fromarray(noise(channels=4), "CMYK"), "JPEG"),
    "WebP": encoded(noise(), "WEBP"),
    "lossless WebP": encoded(noise(channels=4), "WEBP", lossless=True),
    "GIF": encoded(noise(), "GIF"),
    "BMP": encoded(noise(), "BMP"),
    "TIFF": encoded(noise(), "TIFF"),
    "LZW TIFF": encoded(noise(), "TIFF", compression="tiff_lzw"),
    "AVIF": encoded(noise(), "AVIF"),
}


@pytest.mark.parametrize("kind", WHOLE_FILES)
def test_a_truncated_file_is_refused_unless_all_its_pixels_are_there(kind: str) -> None:
    data = WHOLE_FILES[kind]
    expected = decode(data).digest
    cuts = {*range(1, 80), *range(80, len(data), 7), *range(len(data) - 40, len(data))}
    refused = 0
    for cut in sorted(cut for cut in cuts if 0 < cut < len(data)):
        try:
            found = decode(data[:cut], "cut.img").digest
        except ImageError as error:
            refused += 1
            assert "'cut.img'" in str(error)  # noqa: PT017  # the file is named at every cut
        else:
            assert found == expected, f"{kind} cut at {cut} of {len(data)} gave another picture"
    assert refused > 20


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"])
def test_the_pixel_limit_is_ours_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(smooth(10, 15), kind)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)  # at 150 pixels Pillow would warn
    assert decode(data).pixels.shape == (10, 15, 3)
    monkeypatch.setattr(reading, "settings", lambda: Settings(max_pixels=150))
    assert decode(data).pixels.shape == (10, 15, 3)
    monkeypatch.setattr(reading, "settings", lambda: Settings(max_pixels=149))
    with pytest.raises(ImageError, match=r"'b\.img' decodes to 15 × 10 pixels"):
        decode(data, "b.img")
    with pytest.raises(ImageError, match="HOOKVIZ_MAX_PIXELS"):
        read(Image.fromarray(smooth(10, 15)))


def bombs() -> dict[str, bytes]:
    """Small files that claim to be large pictures."""
    jpeg = bytearray(encoded(noise(), "JPEG"))
    frame = jpeg.find(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 50000, 50000)
    scans = bytearray(encoded(noise(), "JPEG", progressive=True))
    frame = scans.find(b"\xff\xc2")
    scans[frame + 5 : frame + 9] = struct.pack(">HH", 9000, 9000)
    avif = bytearray(encoded(smooth(), "AVIF"))
    box = avif.find(b"ispe")
    avif[box + 8 : box + 16] = struct.pack(">II", 50000, 50000)
    gif = bytearray(encoded(noise(), "GIF"))
    gif[6:10] = struct.pack("<HH", 50000, 50000)
    wide_frame = bytearray(encoded(noise(), "GIF"))
    place = wide_frame.rfind(b",\0\0\0\0\x11\0\x0d\0")
    wide_frame[place + 5 : place + 9] = struct.pack("<HH", 50000, 50000)
    bmp = bytearray(encoded(noise(), "BMP"))
    bmp[18:26] = struct.pack("<ii", 50000, 50000)
    zeros = zlib.compress(bytes(10**8))
    canvas = (49999).to_bytes(3, "little")
    extended = b"WEBPVP8X" + struct.pack("<II", 10, 2) + canvas + canvas
    lossless = bytearray(encoded(noise(), "WEBP", lossless=True))
    lossless[21:25] = struct.pack("<I", 16382 | 16382 << 14)
    return {
        "PNG": png([b""], 50000, 8, 6, height=50000),
        "PNG of 16 bits": png([b""], 12000, 16, 2, height=12000),
        "PNG of one bit": png([b""], 50000, 1, 0, height=50000),
        "PNG profile": png([b"\0\0\0"], 1, 8, 2, chunk(b"iCCP", b"a\0\0" + zeros)),
        "JPEG": bytes(jpeg),
        "JPEG scans": bytes(scans) + b"\xff\xda" * 5000,
        "AVIF": bytes(avif),
        "GIF": bytes(gif),
        "GIF frame": bytes(wide_frame),
        "BMP": bytes(bmp),
        "WebP canvas": b"RIFF" + struct.pack("<I", len(extended)) + extended,
        "lossless WebP": bytes(lossless),
        "TIFF": tiff(b"\0", 50000, 50000, (8, 8, 8), 2),
        "TIFF tile": tiff(b"\0" * 99, 5, 5, (8,), 1, tile_width=50000, tile_length=50000),
    }  # fmt: skip


BOMB_RUN = """
import pickle, resource, sys, time
from hookviz.errors import ImageError
from hookviz.images.reading import decode

for name, data in pickle.load(sys.stdin.buffer).items():
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    try:
        decode(data, "bomb.img")
        said = "decoded"
    except ImageError as error:
        said = str(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(name, grown // 1024, round(time.perf_counter() - start, 1), said, sep="|")
"""


def test_bombs_are_refused_without_taking_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOMB_RUN],
        input=pickle.dumps(bombs()),
        capture_output=True,
        check=True,
        cwd=Path(reading.__file__).parents[2],
        timeout=120,
    )
    reasons = {
        "PNG profile": "too large",
        "JPEG scans": "scans",
        "GIF frame": "too many pixels",
        "WebP canvas": "too many pixels",
        "lossless WebP": "too many pixels",
    }
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(bombs())
    for line in lines:
        name, megabytes, seconds, said = line.split("|")
        assert "'bomb.img'" in said, line
        assert reasons.get(name, "decodes to") in said, line
        assert int(megabytes) < 40, line
        assert float(seconds) < 5, line


@pytest.mark.parametrize("shape", [(1, 1), (1, 4000), (4000, 1)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"])
def test_extreme_shapes_decode(kind: str, shape: tuple[int, int]) -> None:
    picture = Image.new("RGB", (shape[1], shape[0]), (200, 100, 50))
    image = decode(encoded(picture, kind))
    assert image.pixels.shape == (*shape, 3)
    assert np.abs(image.pixels.astype(int) - (200, 100, 50)).max() <= 4


def test_a_jpeg_of_48_megapixels_decodes() -> None:
    data = encoded(Image.fromarray(smooth()).resize((8000, 6000)), "JPEG")
    image = decode(data)
    assert image.pixels.shape == (6000, 8000, 3)
    with Image.open(BytesIO(data)) as plain:
        assert np.array_equal(image.pixels, np.asarray(plain))


MAGIC = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x40\0\0\0WEBPVP8 ", b"GIF89a", b"BM",
         b"II*\0", b"MM\0*", b"II+\0", b"\0\0\0\x1cftypavif"]  # fmt: skip


@given(head=st.sampled_from(MAGIC), body=st.binary(max_size=300))
@hypothesis_settings(max_examples=400, deadline=None)
def test_random_bytes_raise_nothing_but_image_errors(head: bytes, body: bytes) -> None:
    survives(head + body)


@given(
    kind=st.sampled_from(sorted(WHOLE_FILES)),
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=4)),
        min_size=1,
        max_size=6,
    ),
)
@hypothesis_settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_files_raise_nothing_but_image_errors(
    kind: str, edits: list[tuple[float, bytes]]
) -> None:
    data = bytearray(WHOLE_FILES[kind])
    for place, patch in edits:
        start = int(place**3 * len(data))  # headers are hit more often than pixels
        data[start : start + len(patch)] = patch
    survives(bytes(data))


def survives(data: bytes) -> None:
    try:
        image = decode(data, "fuzz.img")
    except ImageError as error:
        assert "'fuzz.img'" in str(error)  # noqa: PT017  # both ways out are right
    else:
        assert image.pixels.shape == (image.height, image.width, 3)


def test_many_threads_decode_at_once_and_an_interruption_passes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [*WHOLE_FILES.values()] * 8
    alone = [decode(data).digest for data in files]
    with ThreadPoolExecutor(8) as pool:
        together: list[InputImage] = list(pool.map(decode, files))
    assert [image.digest for image in together] == alone

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(decoding, "pixels_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decode(files[0])


OUT_OF_FILES = """
import resource, sys
from hookviz.errors import ImageError
from hookviz.images.reading import read
from hookviz.language.saying import say
say("image"), read(sys.argv[1])  # what is read when it is first needed
files = [open(sys.argv[1], "rb")]
resource.setrlimit(resource.RLIMIT_NOFILE, (files[0].fileno() + 1,) * 2)
try:
    read(sys.argv[1])
except ImageError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_machine_out_of_open_files_does_not_tell_where_its_images_are(tmp_path: Path) -> None:
    file = tmp_path / "cat.png"
    file.write_bytes(encoded(Image.new("RGB", (8, 8)), "PNG"))
    told = subprocess.run(
        [sys.executable, "-c", OUT_OF_FILES, str(file)], capture_output=True, text=True, check=True
    ).stdout
    assert "'cat.png' can't be opened: Too many open files" in told
    assert str(tmp_path) not in told


def test_a_long_hostile_name_is_shortened() -> None:
    with pytest.raises(ImageError) as caught:
        decode(b"", "a\n<script>" + "b" * 100_000)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_one_bit_two_bit_and_four_bit_grey() -> None:
    assert decode(png([b"\x50"], 4, 1, 0)).pixels[0, :, 0].tolist() == [0, 255, 0, 255]
    assert decode(png([b"\x1b"], 4, 2, 0)).pixels[0, :, 0].tolist() == [0, 85, 170, 255]
    assert decode(png([b"\x0f"], 2, 4, 0)).pixels[0, :, 0].tolist() == [0, 255]
