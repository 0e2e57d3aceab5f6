"""Make small files of every format that HookViz reads, for the fuzzer to begin with."""

import struct
import zlib
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image, ImageCms

_PNG = b"\x89PNG\r\n\x1a\n"


def seeds() -> dict[str, bytes]:
    """Make a small file of every format, depth and colour space that HookViz reads, by name."""
    colours = np.random.default_rng(7).integers(0, 256, (6, 7, 4), dtype=np.uint8)
    rgba = Image.fromarray(colours)
    rgb, grey, cmyk = rgba.convert("RGB"), rgba.convert("L"), Image.fromarray(colours, "CMYK")
    deep = Image.fromarray(colours[..., 0].astype(np.uint16) * 257)
    lab = ImageCms.profileToProfile(
        rgb, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    exif = Image.Exif()
    exif[0x0112] = 6
    more = {"save_all": True, "append_images": [rgb.rotate(90), rgb.rotate(180)]}
    pictures: dict[str, tuple[Any, str, dict[str, Any]]] = {
        "png": (rgb, "PNG", {}),
        "png-alpha": (rgba, "PNG", {}),
        "png-grey-alpha": (rgba.convert("LA"), "PNG", {}),
        "png-palette": (rgb.quantize(8), "PNG", {"transparency": b"\0\x80"}),
        "png-key": (rgb, "PNG", {"transparency": (1, 2, 3)}),
        "png-bit": (grey.convert("1"), "PNG", {}),
        "png-16": (deep, "PNG", {"transparency": 257}),
        "png-profile": (rgb, "PNG", {"icc_profile": profile, "exif": exif}),
        "png-frames": (rgb, "PNG", more),
        "jpeg": (rgb, "JPEG", {}),
        "jpeg-grey": (grey, "JPEG", {}),
        "jpeg-progressive": (rgb, "JPEG", {"progressive": True, "exif": exif}),
        "jpeg-cmyk": (cmyk, "JPEG", {}),
        "jpeg-profile": (rgb, "JPEG", {"icc_profile": profile}),
        "webp": (rgb, "WEBP", {"exif": exif, "icc_profile": profile}),
        "webp-lossless": (rgba, "WEBP", {"lossless": True}),
        "webp-alpha": (rgba, "WEBP", {}),
        "webp-frames": (rgb, "WEBP", more),
        "gif": (rgb, "GIF", {}),
        "gif-clear": (rgb.quantize(8), "GIF", {"transparency": 2, "interlace": True}),
        "gif-frames": (rgb, "GIF", more),
        "bmp": (rgb, "BMP", {}),
        "bmp-palette": (rgb.quantize(8), "BMP", {}),
        "bmp-bit": (grey.convert("1"), "BMP", {}),
        "bmp-alpha": (rgba, "BMP", {}),
        "tiff": (rgb, "TIFF", {"exif": exif}),
        "tiff-big": (rgb, "TIFF", {"big_tiff": True}),
        "tiff-alpha": (rgba, "TIFF", {"compression": "tiff_adobe_deflate"}),
        "tiff-lzw": (rgb, "TIFF", {"compression": "tiff_lzw"}),
        "tiff-packbits": (grey, "TIFF", {"compression": "packbits"}),
        "tiff-fax3": (grey.convert("1"), "TIFF", {"compression": "group3"}),
        "tiff-fax4": (grey.convert("1"), "TIFF", {"compression": "group4"}),
        "tiff-jpeg": (rgb, "TIFF", {"compression": "jpeg"}),
        "tiff-ycbcr": (rgb.convert("YCbCr"), "TIFF", {}),
        "tiff-16": (deep, "TIFF", {}),
        "tiff-32": (grey.convert("I"), "TIFF", {}),
        "tiff-float": (grey.convert("F"), "TIFF", {}),
        "tiff-cmyk": (cmyk, "TIFF", {"icc_profile": profile}),
        "tiff-lab": (lab, "TIFF", {}),
        "tiff-palette": (rgb.quantize(8), "TIFF", {}),
        "tiff-frames": (rgb, "TIFF", more),
        "avif": (rgb, "AVIF", {"exif": exif}),
        "avif-alpha": (rgba, "AVIF", {"icc_profile": profile}),
        "avif-frames": (rgb, "AVIF", more),
    }
    return {name: _file(*picture) for name, picture in pictures.items()} | {
        "png-16-colour": _deep_png(6),
        "png-16-key": _deep_png(2, b"\0\1\0\2\0\3"),
    }


def _file(image: Image.Image, kind: str, options: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _deep_png(colour_type: int, key: bytes = b"") -> bytes:
    """Write a PNG of 3×2 pixels with 16 bits per channel, which Pillow does not write."""
    wide = {2: 6, 6: 8}[colour_type] * 3
    rows = b"".join(b"\0" + bytes((row * 89 + i * 37) % 256 for i in range(wide)) for row in (0, 1))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 16, colour_type, 0, 0, 0))]
    parts += [(b"tRNS", key)] if key else []
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return _PNG + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def repaired(data: bytes) -> bytes:
    """Repair the checksums and lengths in `data` that a change to a PNG or WebP breaks.

    Without that hardly a changed PNG gets past its first chunk, and nothing behind is tried.
    """
    if data[:4] == b"RIFF" and len(data) >= 12:
        return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    if not data.startswith(_PNG):
        return data
    made, place = [_PNG], len(_PNG)
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        if place + 12 + length > len(data):
            break
        made.append(_chunk(data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    return b"".join(made) + data[place:]
