"""Decode the images that strangers send behind the wall; without torch."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import AvifImagePlugin

from hookviz.errors import ImageError, shorten
from hookviz.images import decoding, optional_formats
from hookviz.images.bit_depth import window_of
from hookviz.images.choices import NO_CHOICES, Choices, checked, checked_selection
from hookviz.images.decoding import Decoded, Head, Limits, Pixels
from hookviz.images.formats import HEAD, find_reader, is_for_owners
from hookviz.language.saying import say
from hookviz.reader import wall

if TYPE_CHECKING:  # on Linux alone
    from hookviz.reader.answer_file import AnswerWriter

SMALL = 2_000_000
"""Pixels of an image that is decoded in milliseconds and some megabytes."""

_HEAD_SECONDS, _FRAMES_SECONDS = 3, 30
_PIXELS_A_SECOND = 4_000_000  # of a slow kind on a slow machine


def read_head(data: bytes, name: str, most: int, choices: Choices = NO_CHOICES) -> Head:
    """Return what the header tells, as `decoding.read_head` does."""
    options = {"name": name, "most": most, "small": 0, "choices": asdict(choices)}
    return _head(_read("image", data, options, 0, _HEAD_SECONDS).facts, name, most)


def decode_small(data: bytes, name: str, limits: Limits) -> Decoded | Head:
    """Decode a file of at most `SMALL` pixels; of a larger one tell what decoding takes.

    Raises:
        ImageError: it can't be decoded within the limits.
    """
    options = _options(name, limits, SMALL)
    answer = _read("image", data, options, SMALL * decoding.DEEP_BYTES, _HEAD_SECONDS)
    if answer.arrays:
        return _decoded(answer, name, limits.pixels)
    return _head(answer.facts, name, limits.pixels)


def decode(data: bytes, name: str, limits: Limits, head: Head | None = None) -> Decoded:
    """Decode a file as `decoding.decode` does; `head` is what `decode_small` told of it, if known.

    Raises:
        ImageError: it can't be decoded within the limits.
    """
    small = head or decode_small(data, name, limits)
    if isinstance(small, Decoded):
        return small
    options = _options(name, limits, limits.pixels)
    seconds = _HEAD_SECONDS + small.pixels // _PIXELS_A_SECOND
    return _decoded(_read("image", data, options, small.memory, seconds), name, limits.pixels)


def decode_frames(data: bytes, name: str, count: int, most: int) -> list[Pixels]:
    """Decode frames of an animation as `decoding.decode_frames` does.

    Raises:
        ImageError: it can't be decoded within the limits.
    """
    head = read_head(data, name, most)
    memory = head.memory + 3 * min(most, count * head.pixels)
    options = {"name": name, "most": most, "count": count}
    answer = _read("frames", data, options, memory, _FRAMES_SECONDS)
    return [_pixels(answer, f"frame {number}", name, most) for number in range(count)]


def read_image(
    data: "mmap | bytes", options: Mapping[str, Any], answer: "AnswerWriter"
) -> Mapping[str, Any]:
    """Decode a file, or tell what it takes where it is not small; run behind the wall."""
    whole, name, most = bytes(data), options["name"], options["most"]
    choices = checked(**options["choices"])
    head = decoding.read_head(whole, name, most, choices)
    if head.pixels > options["small"]:
        return {"pixels": head.pixels, "memory": head.memory}
    background = tuple(options["background"])
    limits = Limits(most, background, choices, lambda shape: answer.array("pixels", shape, "uint8"))
    decoded = decoding.decode(whole, name, limits)
    return {"animated": decoded.animated, "selection": asdict(decoded.selection)}


def read_frames(
    data: "mmap | bytes", options: Mapping[str, Any], answer: "AnswerWriter"
) -> Mapping[str, Any]:
    """Decode frames of an animation; run behind the wall."""
    limits = Limits(options["most"])
    frames = decoding.decode_frames(bytes(data), options["name"], options["count"], limits)
    for number, pixels in enumerate(frames):
        answer.write(f"frame {number}", pixels)
    return {}


def preload() -> None:
    """Load what readers load once they are used, and have AVIF's begin no threads."""
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    for plugin in (
        "TiffTags",
        "ImageCms",
        "ImageOps",
        "ImageChops",
        "JpegPresets",
        "GimpPaletteFile",
    ):
        import_module(f"PIL.{plugin}")
    optional_formats.preload()
    window_of(np.arange(2))  # NumPy's percentiles import more when they are first asked for


def _options(name: str, limits: Limits, small: int) -> dict[str, Any]:
    return {
        "name": name,
        "most": limits.pixels,
        "small": small,
        "background": limits.background,
        "choices": asdict(limits.choices),
    }


def _read(
    job: str, data: bytes, options: Mapping[str, Any], memory: int, seconds: int
) -> wall.Answer:
    if is_for_owners(find_reader(data[:HEAD], options["name"])):
        raise ImageError(
            say(
                "{file} is a DICOM image or a HEIC photo, which HookViz reads by its path alone: "
                "hookviz.read_image(path). Upload it saved as a PNG or a JPEG.",
                file=wall.quoted(options["name"]),
            )
        )
    options = {**options, "name": shorten(options["name"])}
    memory += wall.BASE_BYTES + 2 * len(data)
    return wall.read(job, data, options, memory=memory, seconds=seconds)


def _head(facts: Mapping[str, Any], name: str, most: int) -> Head:
    """Return what a process told, which may lie: in no more than an image of the limit takes."""
    pixels, memory = facts.get("pixels"), facts.get("memory")
    if type(pixels) is not int or type(memory) is not int:
        raise ImageError(wall.crashed(name))
    return Head(min(pixels, most), min(memory, most * decoding.DEEP_BYTES))


def _decoded(answer: wall.Answer, name: str, most: int) -> Decoded:
    facts = answer.facts.get("selection")
    selection = checked_selection(facts) if isinstance(facts, dict) else None
    if selection is None:
        raise ImageError(wall.crashed(name))
    pixels = _pixels(answer, "pixels", name, most)
    return Decoded(pixels, selection, answer.facts.get("animated") is True)


def _pixels(answer: wall.Answer, array: str, name: str, most: int) -> Pixels:
    pixels = answer.arrays.get(array)
    if pixels is None or pixels.dtype != "uint8" or pixels.shape[2:] != (3,):
        raise ImageError(wall.crashed(name))
    if not 0 < pixels.size <= 3 * most:
        raise ImageError(wall.crashed(name))
    return pixels
