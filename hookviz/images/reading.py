"""Read an image from a path, bytes or a Pillow image to an upright RGB `InputImage`, or refuse it.

`decoding` has what is done with the bytes. Those that a stranger sends to an app are decoded behind
the wall (`confined`); a file that is there is its owner's, and is decoded here.
"""

import errno
import hashlib
import os
from itertools import islice
from pathlib import Path

from PIL import Image

from hookviz.errors import ImageError, nearest_names, shorten
from hookviz.images import confined, decoding
from hookviz.images.animations import frame_count
from hookviz.images.decoding import RGB, WHITE, Head, Limits, pixels_of, readable
from hookviz.images.formats import HEAD, find_reader
from hookviz.images.urls import ImageUrl, is_url
from hookviz.language.saying import joined, say
from hookviz.paths import fault_of, path_of
from hookviz.reader import wall
from hookviz.reader.endings import quoted
from hookviz.settings import settings
from hookviz.types import InputImage, Pixels

Source = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | Image.Image | InputImage | ImageUrl
)


def read(source: Source, *, background: RGB = WHITE) -> InputImage:
    """Read the image in a file, bytes or a Pillow image; an `InputImage` is returned as it is.

    Args:
        source: a path, a URL such as ``s3://…``, the bytes of an image file, a Pillow image of any
            mode, or an `InputImage`.
        background: RGB in 0…255, what shows through where the image is transparent.

    Raises:
        ImageError: there is no such file, its bytes can't be decoded (see `decode`), or
            `background` is no colour.

    >>> image = hookviz.read_image("assets/samples/cat.jpg")
    >>> image.name, image.pixels.shape  # (H, W, 3)
    ('cat.jpg', (300, 451, 3))
    """
    colour = _colour(background)
    if isinstance(source, InputImage):
        return source
    if isinstance(source, Image.Image):
        name = Path(str(getattr(source, "filename", ""))).name or "image"
        limits = Limits(settings().max_pixels, colour)
        with readable(name, limits.pixels):
            return _image(pixels_of(source, name, limits), name)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return decode(bytes(source), background=colour)
    if isinstance(source, ImageUrl) or (isinstance(source, str) and is_url(source)):
        url = source if isinstance(source, ImageUrl) else ImageUrl(source)
        return decode(url.read(), url.name, background=colour)
    if isinstance(source, (str, os.PathLike)):
        path = path_of(source)
        return decode_here(_bytes_of(path), path.name, background=colour)
    raise ImageError(
        say(
            "An image can't be read from {name!r}; give a path, bytes or a picture.",
            name=type(source).__name__,
        )
    )


def decode(
    data: bytes, name: str = "image", *, background: RGB = WHITE, head: Head | None = None
) -> InputImage:
    """Decode `data` to upright 8-bit sRGB; of an animation, its first frame.

    Of an animation the bytes are kept as they are, for networks that take video.

    EXIF orientation is carried out. A colour profile (ICC) is converted to sRGB; one that is
    broken or belongs to another kind of image is ignored and logged. 16 bits per channel are
    rounded to 8, so that 65535 becomes 255 (in compressed TIFFs stored plane by plane they are cut
    to 8, a difference of one level at most). Grey TIFFs of 32 bits have no agreed white point: see
    `_range`. CMYK without a profile becomes ``(255 - ink) * (255 - black) / 255``. Transparency is
    blended onto `background` linearly in sRGB values, as browsers do.

    Args:
        data: a whole PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF file.
        name: what to call it in messages, for example the file's name.
        background: RGB in 0…255, what shows through where the image is transparent.
        head: what `decode_small` told of it, where that has been asked.

    Raises:
        ImageError: `data` is empty, of another format, damaged, or decodes to more pixels than
            ``settings().max_pixels``. No other exception comes from whatever bytes there are.
    """
    if not wall.is_up():
        return decode_here(data, name, background=background)
    decoded = confined.decode(data, name, settings().max_pixels, _colour(background), head)
    return _image(decoded.pixels, name, data if decoded.animated else b"")


def decode_small(data: bytes, name: str) -> InputImage | Head:
    """Decode a file of few pixels as `decode` does; of a larger one tell what decoding takes.

    Raises:
        ImageError: as `decode`.
    """
    most = settings().max_pixels
    if wall.is_up():
        decoded = confined.decode_small(data, name, most, WHITE)
        if isinstance(decoded, Head):
            return decoded
        return _image(decoded.pixels, name, data if decoded.animated else b"")
    head = decoding.read_head(data, name, most)
    return head if head.pixels > confined.SMALL else decode_here(data, name)


def decode_here(data: bytes, name: str = "image", *, background: RGB = WHITE) -> InputImage:
    """Decode `data` as `decode` does, in this process also where the wall is up."""
    limits = Limits(settings().max_pixels, _colour(background))
    pixels = decoding.decode(data, name, limits)
    return _image(pixels, name, data if frame_count(data) > 1 else b"")


def decode_frames(image: InputImage, count: int) -> tuple[InputImage, ...]:
    """Return `count` frames of an animation in even steps (see `decoding.decode_frames`).

    Raises:
        ImageError: one can't be decoded.
    """
    if not image.animation:
        return (image,)
    most, data = settings().max_pixels, image.animation
    if wall.is_up():
        frames = confined.decode_frames(data, image.name, count, most)
    else:
        frames = decoding.decode_frames(data, image.name, count, Limits(most))
    return tuple(_image(pixels, image.name) for pixels in frames)


def pixel_count(data: bytes, name: str = "image") -> int:
    """Return how many pixels a file's image has by its header; none of them is decoded.

    Raises:
        ImageError: as `decode`, so far as the head shows it.
    """
    most = settings().max_pixels
    read = confined.read_head if wall.is_up() else decoding.read_head
    return read(data, name, most).pixels


def _image(pixels: Pixels, name: str, animation: bytes = b"") -> InputImage:
    pixels.setflags(write=False)
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    digest.update(animation)
    return InputImage(pixels, name, digest.hexdigest(), animation)


def _bytes_of(path: Path) -> bytes:
    """Read an image file; what can't be one by its first bytes isn't read any further."""
    try:
        if not path.is_file():  # a device or a pipe could go on for ever
            raise ImageError(_no_file(path))
        with path.open("rb") as file:
            head = file.read(HEAD)
            find_reader(head, path.name)
            return head + file.read()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        # What the machine lacks is not the path's fault, and a visitor is not to read where it is.
        is_machine = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
        shown = quoted(path.name if is_machine else str(path))
        raise ImageError(
            say("{file} can't be opened: {reason}.", file=shown, reason=reason)
        ) from error


def _no_file(path: Path) -> str:
    shown, folder = quoted(str(path)), path if path.is_dir() else path.parent
    if folder != path and (fault := fault_of(path)):
        return say("{file} is {fault}; give a file with a picture in it.", file=shown, fault=fault)
    if not folder.is_dir():
        return say("There is no file {file}: its folder doesn't exist.", file=shown)
    names = [entry.name for entry in islice(folder.iterdir(), 2000)]  # enough to look through
    if folder == path:
        holds = joined(map(quoted, sorted(names)[:3])) or "nothing"
        return say(
            "{file} is a folder, not an image; it holds {contents}.", file=shown, contents=holds
        )
    near = " or ".join(map(quoted, nearest_names(path.name, names)))
    hint = (
        say("Did you mean {name}?", name=near)
        if near
        else say("No name in that folder is like it.")
    )
    return say("There is no image file {file}. {hint}", file=shown, hint=hint)


def _colour(background: RGB) -> RGB:
    """Return `background`, or refuse it where it is not three whole numbers in 0…255."""
    try:
        levels = tuple(background)
        if len(levels) == 3 and all(level in range(256) for level in levels):
            return int(levels[0]), int(levels[1]), int(levels[2])
    except (TypeError, ValueError):  # one number, or three of something else
        pass
    raise ImageError(
        say(
            "The background {background} is no colour; give red, green and blue, each in "
            "0…255, for example (255, 255, 255).",
            background=shorten(repr(background)),
        )
    )
