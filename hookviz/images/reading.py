"""Read an image from a path, bytes or a Pillow image to an upright RGB `InputImage`, or refuse it.

`decoding` has what is done with the bytes. Those that a stranger sends to an app are decoded behind
the wall (`confined`); a file that is there is its owner's, and is decoded here.
"""

import errno
import hashlib
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from PIL import Image

from hookviz.errors import ImageError, nearest_names, shorten
from hookviz.images import confined, decoding
from hookviz.images.arrays import ARRAYS, Array, picture_of
from hookviz.images.choices import NO_CHOICES, Choices, checked
from hookviz.images.decoding import RGB, WHITE, Decoded, Head, Limits, pixels_of
from hookviz.images.files import ImageUrl, is_url
from hookviz.images.formats import HEAD, find_reader, readable
from hookviz.language.saying import joined, say
from hookviz.paths import fault_of, path_of
from hookviz.reader import wall
from hookviz.reader.wall import quoted
from hookviz.settings import settings
from hookviz.types import InputImage

Source = (
    str
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | Image.Image
    | InputImage
    | ImageUrl
    | Array
)


def read(
    source: Source,
    *,
    background: RGB = WHITE,
    window: Sequence[float] | None = None,
    page: int | None = None,
    bands: Sequence[int] | None = None,
) -> InputImage:
    """Read the image in a file, bytes, an array or a Pillow image, upright and in 8-bit sRGB.

    An `InputImage` is returned as it is. Where a file has several pages, more bands than colours or
    greys of more than 8 bits, `InputImage.note` says in one line which of them are shown.

    Args:
        source: a path, a URL such as ``s3://…``, the bytes of an image file, a Pillow image of any
            mode, an `InputImage`, or a picture as an array or a tensor: uint8, ``(H, W)`` or
            ``(H, W, 3)`` in RGB order (OpenCV's is BGR: give ``image[..., ::-1]``), with opacity
            ``(H, W, 4)``; the same with floats in 0…1; ``(C, H, W)`` in uint8.
        background: RGB in 0…255, what shows through where the image is transparent.
        window: ``(level, width)`` for greys of more than 8 bits, in the file's own values: from
            level - width / 2, black, to level + width / 2, white. By default from the 0.5th to the
            99.5th percentile of the image's values.
        page: of a TIFF, from 1; the first by default.
        bands: three of a TIFF's bands as red, green and blue, from 1; the first three by default.

    Raises:
        ImageError: there is no such file, its bytes can't be decoded (see `decode`), the array is
            no picture, or `background`, `window`, `page` or `bands` make no sense for it.

    >>> image = hookviz.read_image("assets/samples/cat.jpg")
    >>> image.name, image.pixels.shape  # (H, W, 3)
    ('cat.jpg', (300, 451, 3))
    """
    choices = checked(window, page, bands)
    limits = Limits(settings().max_pixels, _colour(background), choices)
    if isinstance(source, ARRAYS):
        source = picture_of(source)
    if isinstance(source, InputImage | Image.Image) and (page or bands):
        raise ImageError(
            say(
                "page= and bands= choose of a file; this image is one page already. Leave them out."
            )
        )
    if isinstance(source, InputImage):
        if window is not None:
            raise ImageError(
                say("window= is for reading a file; this image has 8 bits already. Leave it out.")
            )
        return source
    if isinstance(source, Image.Image):
        name = Path(str(getattr(source, "filename", ""))).name or "image"
        with readable(name, limits.pixels):
            return _image(pixels_of(source, name, limits), name)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return decode(bytes(source), background=background, choices=choices)
    if isinstance(source, ImageUrl) or (isinstance(source, str) and is_url(source)):
        url = source if isinstance(source, ImageUrl) else ImageUrl(source)
        return decode(url.read(), url.name, background=background, choices=choices)
    if isinstance(source, (str, os.PathLike)):
        path = path_of(source)
        return decode_here(_bytes_of(path), path.name, background=background, choices=choices)
    raise ImageError(
        say(
            "An image can't be read from {name!r}; give a path, bytes, an array or a picture.",
            name=type(source).__name__,
        )
    )


def decode(
    data: bytes,
    name: str = "image",
    *,
    background: RGB = WHITE,
    head: Head | None = None,
    choices: Choices = NO_CHOICES,
) -> InputImage:
    """Decode `data` to upright 8-bit sRGB; of an animation, its first frame.

    Of an animation the bytes are kept as they are, for networks that take video.

    EXIF orientation is carried out. A colour profile (ICC) is converted to sRGB; one that is
    broken or belongs to another kind of image is ignored and logged. Colours of 16 bits a channel
    are rounded to 8, so that 65535 becomes 255 (in compressed TIFFs stored plane by plane they are
    cut to 8, a difference of one level at most). Greys of 12, 16 or 32 bits are shown in a window,
    by default from their 0.5th to their 99.5th percentile. CMYK without a profile becomes ``(255 -
    ink) * (255 - black) / 255``. Transparency is blended onto `background` linearly in sRGB values,
    as browsers do.

    Args:
        data: a whole PNG, JPEG, WebP, GIF, BMP, TIFF or AVIF file.
        name: what to call it in messages, for example the file's name.
        background: RGB in 0…255, what shows through where the image is transparent.
        head: what `decode_small` told of it, where that has been asked.
        choices: page, bands and window.

    Raises:
        ImageError: `data` is empty, of another format, damaged, or decodes to more pixels than
            ``settings().max_pixels``. No other exception comes from whatever bytes there are.
    """
    if not wall.is_up():
        return decode_here(data, name, background=background, choices=choices)
    limits = Limits(settings().max_pixels, _colour(background), choices)
    return _image(confined.decode(data, name, limits, head), name, data)


def decode_small(data: bytes, name: str, choices: Choices = NO_CHOICES) -> InputImage | Head:
    """Decode a file of few pixels as `decode` does; of a larger one tell what decoding takes.

    Raises:
        ImageError: as `decode`.
    """
    limits = Limits(settings().max_pixels, choices=choices)
    if wall.is_up():
        decoded = confined.decode_small(data, name, limits)
        return decoded if isinstance(decoded, Head) else _image(decoded, name, data)
    head = decoding.read_head(data, name, limits.pixels, choices)
    return head if head.pixels > confined.SMALL else decode_here(data, name, choices=choices)


def decode_here(
    data: bytes,
    name: str = "image",
    *,
    background: RGB = WHITE,
    choices: Choices = NO_CHOICES,
) -> InputImage:
    """Decode `data` as `decode` does, in this process also where the wall is up."""
    limits = Limits(settings().max_pixels, _colour(background), choices)
    return _image(decoding.decode(data, name, limits), name, data)


_PROFILES = (b"iCCP", b"ICC_PROFILE", b"ICCP")  # as PNG, JPEG and WebP announce one


def decode_small_file(data: bytes, name: str) -> InputImage:
    """Decode a small PNG, JPEG or WebP file in this process, which takes a few milliseconds.

    With a colour profile, which can take minutes, as `decode` does.
    """
    has_profile = any(sign in data for sign in _PROFILES)
    return decode(data, name) if has_profile else decode_here(data, name)


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
    return tuple(_image(Decoded(pixels), image.name) for pixels in frames)


def pixel_count(data: bytes, name: str = "image") -> int:
    """Return how many pixels a file's image has by its header; none of them is decoded.

    Raises:
        ImageError: as `decode`, so far as the head shows it.
    """
    most = settings().max_pixels
    read = confined.read_head if wall.is_up() else decoding.read_head
    return read(data, name, most).pixels


def _image(decoded: Decoded, name: str, data: bytes = b"") -> InputImage:
    pixels, animation = decoded.pixels, data if decoded.animated else b""
    pixels.setflags(write=False)
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    digest.update(animation)
    return InputImage(pixels, name, digest.hexdigest(), animation, decoded.selection.note)


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
