"""Expand folders, patterns and names to image files."""

import glob
from collections.abc import Iterable
from pathlib import Path

from hookviz.errors import ImageError
from hookviz.images.formats import SUFFIXES
from hookviz.images.urls import ImageUrl, expand_url, is_url
from hookviz.language.saying import joined, mark, say
from hookviz.paths import path_of

ImageFile = Path | ImageUrl
"""Where an image lies: on this machine, or where a URL says."""


def expand(arguments: Iterable[str], *, inside: bool = False) -> tuple[ImageFile, ...]:
    """Expand arguments to files, each once: a file, a folder's images, or a pattern's.

    A URL names a file or a folder in the same way, but no pattern.

    Folders and patterns (``*``, ``?``, ``[a-c]``, ``**``) give what ends in one of `SUFFIXES`,
    sorted by name. A file named in full is taken as it is, whether there is one or not. Where
    `inside`, a folder gives the images in its folders, too, but not in folders that links lead to.

    Raises:
        ImageError: a folder or a pattern gives no image, or an argument is empty.
    """
    files: list[ImageFile] = []
    for text in arguments:
        if not text.strip():  # a shell variable that is not set, and not all images around
            raise ImageError(
                say(
                    "{text!r} names no image; give a file, a folder ('.' is the one you are in) "
                    "or a pattern.",
                    text=text,
                )
            )
        if is_url(text):
            files += (file for _, file in expand_url(text, inside=inside))
            continue
        path = path_of(text)
        if path.is_dir():
            expanded = _only_images(path.rglob("*") if inside else path.iterdir())
        elif not path.exists() and glob.has_magic(text):
            matches = glob.iglob(str(path), recursive=True)  # noqa: PTH207 - Path's take no "/…"
            expanded = _only_images(map(Path, matches))
        else:
            expanded = [path]
        if not expanded:
            kind = mark("folder") if path.is_dir() else mark("pattern")
            raise ImageError(
                say(
                    "The {kind} {text!r} gives no image, a file that ends in {suffixes}.",
                    kind=say(kind),
                    text=text,
                    suffixes=joined(sorted(SUFFIXES)),
                )
            )
        files += expanded
    return tuple(dict.fromkeys(files))


def _only_images(files: Iterable[Path]) -> list[Path]:
    return sorted(file for file in files if file.suffix.casefold() in SUFFIXES and file.is_file())
