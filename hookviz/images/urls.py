"""Read images by URL from object stores and other file systems that pyarrow knows.

``s3://``, ``gs://``, ``abfs://``, ``hdfs://`` and ``file://``: what pyarrow reads, with its own
ways of logging in. Ray Data reads through the same.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from hookviz.errors import HookVizError, ImageError, shorten
from hookviz.images.formats import HEAD, SUFFIXES, find_reader
from hookviz.language.saying import joined, say

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
