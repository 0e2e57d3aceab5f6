"""Refuse images that can't be decoded, or not within the limits, each in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image
from PIL.ImageFile import ImageFile

from hookviz.errors import ImageError, shorten
from hookviz.images.choices import Choices
from hookviz.images.formats import FORMATS
from hookviz.language.saying import say
from hookviz.reader.wall import quoted


@contextmanager
def readable(name: str, most: int) -> Iterator[None]:
    """Turn everything that Pillow can raise in the block into an `ImageError`."""
    try:
        yield
    except (ImageError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(_too_large(name, say("has too many pixels"), most)) from error
    # On broken bytes Pillow's readers raise whatever their line of code happens to raise: OSError,
    # SyntaxError, struct.error, zlib.error, MemoryError, … All of it says the same about the file.
    except Exception as error:
        reason = shorten(str(error), 120) or type(error).__name__
        raise ImageError(
            say(
                "{file} is truncated, damaged, or of a kind that can't be read ({reason}). "
                "Get the file again, or save the picture anew as {formats}.",
                file=quoted(name),
                reason=reason,
                formats=say(FORMATS),
            )
        ) from error


def check_size(name: str, most: int, width: Any, height: Any) -> None:
    """Refuse more pixels than are allowed."""
    if width * height > most:
        size = say(
            "decodes to {width} × {height} pixels, {megapixels:,.1f} million",
            width=width,
            height=height,
            megapixels=width * height / 1e6,
        )
        raise ImageError(_too_large(name, size, most))


def _too_large(name: str, size: str, most: int) -> str:
    limit = say("{megapixels:,.1f} million (HOOKVIZ_MAX_PIXELS)", megapixels=most / 1e6)
    return say(
        "{file} {size}. HookViz reads up to {limit}; give a smaller version.",
        file=quoted(name),
        size=size,
        limit=limit,
    )


def check_scans(data: bytes, image: ImageFile, name: str, most: int) -> None:
    """Refuse a JPEG that makes the decoder pass over its pixels again and again, scan by scan."""
    scans = data.count(b"\xff\xda")  # a marker, never part of coded data; about ten are usual
    if scans > 100 and scans * image.width * image.height > 20 * most:
        raise ImageError(
            say(
                "{file} has {scans} scans, too many; save it anew as a PNG.",
                file=quoted(name),
                scans=scans,
            )
        )


def check_has_no_window(choices: Choices, name: str) -> None:
    """Refuse a window for an image that has none."""
    if choices.window is not None:
        raise ImageError(
            say(
                "{file} is no grey of more than 8 bits, which alone is shown in a window; leave "
                "window= out.",
                file=quoted(name),
            )
        )
