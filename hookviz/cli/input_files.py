"""Find a command line's images, work on one after another, and name the results' files."""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import click

from hookviz.cli.terminal import complain, in_words
from hookviz.errors import EngineError, HookVizError, ImageError, SettingError, UnknownNameError
from hookviz.images import reading
from hookviz.images.files import ImageFile, ImageUrl, expand
from hookviz.paths import path_of

__all__ = [
    "ImageFile",
    "Row",
    "destinations",
    "each",
    "existing",
    "expand",
    "failed_row",
    "file_ending_in",
]

Picture = TypeVar("Picture", bound=ImageFile)
Row = dict[str, Any]
"""What a command says about one image: at least ``"image"``, and ``"error"`` where it failed."""


def destinations(
    out: str, pictures: Sequence[ImageFile], suffixes: Sequence[str]
) -> dict[ImageFile, Path]:
    """Return the path of each image's result; the folders are made.

    `out` is a file where it ends in one of `suffixes`, and then it takes one image, or has
    ``{name}`` in it for an image's name without its ending. Otherwise it is a folder, in which
    results get the images' names and the first of `suffixes`. Images of one name are numbered.

    Raises:
        SettingError: `out` is empty, can't take that many images, ends in something else, or is an
            image that would be read.
        OSError: the folder can't be made.
    """
    if not out.strip():
        raise SettingError(f"-o {out!r} names no file; give one, or a folder such as './'.")
    out = os.path.expanduser(out)  # noqa: PTH111 - a Path would lose the "/" at the end
    name = Path(out)
    known = name.suffix.casefold() in suffixes
    if "{name}" in out:
        pattern = out if known else f"{out}{suffixes[0]}"
    elif name.is_dir() or out.endswith(("/", os.sep)) or not name.suffix:
        pattern = str(name / "{name}") + suffixes[0]
    elif known:
        pattern = out
    else:
        raise SettingError(
            f"{out!r} ends in none of {', '.join(suffixes)}; for a folder of that name, "
            f"write {out + '/'!r}."
        )
    if "{name}" not in pattern and len(pictures) > 1:
        raise SettingError(
            f"{len(pictures)} images don't go into one file {out!r}; give a folder, "
            f"or a name such as {str(name.with_stem('{name}'))!r}."
        )
    sources = {picture.resolve() for picture in pictures if isinstance(picture, Path)}
    taken: dict[str, int] = {}
    outputs: dict[ImageFile, Path] = {}
    for picture in pictures:
        output = _free(pattern, picture.stem, taken)
        if output.resolve() in sources:
            raise SettingError(f"{str(output)!r} is an image to be read; give another name for -o.")
        output.parent.mkdir(parents=True, exist_ok=True)
        outputs[picture] = output
    return outputs


def file_ending_in(out: str, suffixes: Collection[str]) -> Path:
    """Return the file that the option ``-o`` names.

    Raises:
        SettingError: it ends in none of the suffixes.
    """
    path = path_of(out)
    if path.suffix.casefold() not in suffixes:
        raise SettingError(f"-o {out!r} ends in none of {', '.join(suffixes)}.")
    return path


def existing(pictures: Sequence[ImageFile]) -> tuple[list[ImageFile], list[Row]]:
    """Return the files that are there, and a row for each that is not, which is reported.

    Of a URL that is known when it is read.

    A model may have to be downloaded first; a typing mistake is told before that.
    """
    existing_files: list[ImageFile] = []
    missing: list[Row] = []
    for picture in pictures:
        if isinstance(picture, ImageUrl) or picture.is_file():
            existing_files.append(picture)
        else:
            try:
                reading.read(picture)
            except ImageError as error:
                missing.append(failed_row(picture, error))
    return existing_files, missing


def each(pictures: Sequence[Picture], work: Callable[[Picture], Row]) -> list[Row]:
    """Call `work` on each image and return the rows; one that fails is reported.

    A bar on standard error shows how far it is, where that is a terminal and the images are many.

    Raises:
        UnknownNameError, SettingError, EngineError: the same would happen with every image.
    """
    rows: list[Row] = []
    shown = len(pictures) > 1 and sys.stderr.isatty()
    with click.progressbar(
        pictures,
        label="Images",
        file=sys.stderr,
        hidden=not shown,
        show_pos=True,
        item_show_func=lambda picture: picture.name if picture else "",
    ) as bar:
        for picture in bar:
            try:
                rows.append({"image": str(picture), **work(picture)})
            except (UnknownNameError, SettingError, EngineError):
                raise
            except (HookVizError, OSError) as error:
                if shown:
                    click.echo("\r\x1b[K", nl=False, err=True)  # the message takes the bar's line
                rows.append(failed_row(picture, error))
    return rows


def failed_row(picture: object, error: Exception) -> Row:
    """Report an image that failed on standard error, and return its row."""
    complain(f"{picture}: {in_words(error)}")
    return {"image": str(picture), "error": in_words(error)}


def _free(pattern: str, stem: str, taken: dict[str, int]) -> Path:
    """Fill the image's name into `pattern`, with a number where that is taken already.

    `taken` has the last number that each was given, so that many of one name take no longer.
    """
    plain = pattern.replace("{name}", stem).casefold()  # some file systems know no upper case
    for number in count(taken.get(plain, 0) + 1):
        path = pattern.replace("{name}", stem if number == 1 else f"{stem}-{number}")
        key = path.casefold()
        if number == 1 or key not in taken:
            taken[plain] = number
            taken.setdefault(key, 1)
            return Path(path)
    raise AssertionError("unreachable")
