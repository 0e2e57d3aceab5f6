"""Find the image files that folders, patterns and URLs name, and read images by URL.

Of URLs pyarrow reads ``s3://``, ``gs://``, ``abfs://``, ``hdfs://`` and ``file://``, with its own
ways of logging in. Ray Data reads through the same.
"""

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from hookviz.errors import HookVizError, ImageError, shorten
from hookviz.images.formats import HEAD, SUFFIXES, find_reader
from hookviz.language.saying import joined, mark, say
from hookviz.paths import path_of

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(image: object) -> bool:
    """Return whether it is a URL, ``scheme://…``, as text or as an `ImageUrl`."""
    return isinstance(image, ImageUrl) or (isinstance(image, str) and bool(_URL.match(image)))


@dataclass(frozen=True, slots=True, order=True)
class ImageUrl:
    """URL of an image, written without what can be a password in it.

    Attributes:
        url: with what can't stand in a URL quoted, such as ``%20``.
    """

    url: str = field(repr=False)

    def __str__(self) -> str:
        return _shown(self.url)

    @property
    def name(self) -> str:
        """Last part of the path."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def stem(self) -> str:
        """Last part of the path without its ending."""
        return PurePosixPath(self.name).stem

    def read(self) -> bytes:
        """Read the image file; what can't be one by its first bytes isn't read further.

        Raises:
            ImageError: it is not there, can't be reached, or is no image by its beginning.
            HookVizError: pyarrow is not installed, or the scheme or the login does not work.
        """
        system, path = _located(self.url)
        try:
            with system.open_input_stream(path) as file:
                head = file.read(HEAD)
                find_reader(head, self.name)
                return bytes(head + file.read())
        except (OSError, ValueError) as error:
            raise ImageError(
                say(
                    "{url!r} can't be read: {reason}.",
                    url=shorten(str(self)),
                    reason=_reason(error),
                )
            ) from error


ImageFile = Path | ImageUrl
"""Where an image lies: on this machine, or where a URL says."""


def expand_url(url: str, *, inside: bool = False) -> tuple[tuple[str, ImageUrl], ...]:
    """Expand a URL to images with their paths from it: one, or all of a folder, by name.

    Args:
        url: of a file that ends in one of `SUFFIXES`, or of a folder.
        inside: take in the folders in it too.

    Raises:
        ImageError: there is nothing of that name, or no image in it.
        HookVizError: as `ImageUrl.read`.
    """
    one = ImageUrl(url)
    if PurePosixPath(one.name).suffix.casefold() in SUFFIXES:
        return ((one.name, one),)
    system, path = _located(url)
    fs = _pyarrow_fs()
    try:
        listed = system.get_file_info(fs.FileSelector(path, recursive=inside))
    except (OSError, ValueError) as error:
        raise ImageError(
            say(
                "{url!r} can't be listed: {reason}.",
                url=shorten(_shown(url)),
                reason=_reason(error),
            )
        ) from error
    parts = urlsplit(url)
    top = path.rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    base = f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path).rstrip('/'))}"
    urls = []
    for info in listed:
        within = info.path.removeprefix(top).lstrip("/")
        if info.type == fs.FileType.File and PurePosixPath(within).suffix.casefold() in SUFFIXES:
            urls.append((within, ImageUrl(f"{base}/{quote(within)}{query}")))
    if not urls:
        raise ImageError(
            say(
                "The folder {url!r} gives no image, a file that ends in {suffixes}.",
                url=shorten(_shown(url)),
                suffixes=joined(sorted(SUFFIXES)),
            )
        )
    return tuple(sorted(urls))


def _located(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    parts = urlsplit(url)
    system, top = _file_system(parts.scheme, parts.netloc, parts.query)
    return system, top.rstrip("/") + unquote(parts.path)


@lru_cache(maxsize=16)  # to log in takes longer than to read
def _file_system(scheme: str, netloc: str, query: str) -> tuple[Any, str]:
    fs = _pyarrow_fs()
    url = f"{scheme}://{netloc}/"
    try:
        system, top = fs.FileSystem.from_uri(f"{url}?{query}" if query else url)
    except Exception as error:
        reason = _reason(error).replace(netloc, netloc.rpartition("@")[2])
        raise HookVizError(
            say(
                "{url!r} can't be reached: {reason}. pyarrow's file systems work, such as "
                "s3://, gs://, abfs:// and file://, and folders of this machine.",
                url=shorten(_shown(url)),
                reason=reason,
            )
        ) from error
    return system, top


def _pyarrow_fs() -> Any:
    try:
        return import_module("pyarrow.fs")
    except ImportError as error:
        raise HookVizError(
            say(
                "Images are read from URLs through pyarrow: pip install 'hookviz[ray]'. "
                "Files and folders of this machine are read without it."
            )
        ) from error


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shorten(str(error).partition("\n")[0], 160).rstrip(".") or type(error).__name__


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
