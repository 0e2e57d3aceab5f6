"""Choose a page, three bands and a window of a file that has several, and note the choice.

The pages of a TIFF are counted without decoding any.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hookviz.errors import ImageError, shorten
from hookviz.language.saying import joined, say, sentences
from hookviz.reader.wall import quoted

Window = tuple[float, float]
"""Level and width: greys up to level - width / 2 are black, from level + width / 2 on white."""
MOST_PAGES = 10_000

# Of TIFF 6.0 and of BigTIFF, by the version in the head: where the first directory's offset is, the
# code of an offset, the code of a count of entries, and the bytes of an entry.
_LAYOUTS = {42: (4, "I", "H", 12), 43: (8, "Q", "Q", 20)}


@dataclass(frozen=True, slots=True)
class Choices:
    """A person's choices of page, bands and window; None for the default.

    Attributes:
        window: level and width for greys of more than 8 bits.
        page: of a TIFF, from 1.
        bands: shown as red, green and blue, from 1.
    """

    window: Window | None = None
    page: int | None = None
    bands: tuple[int, ...] | None = None


NO_CHOICES = Choices()


@dataclass(frozen=True, slots=True)
class Selection:
    """Page, bands and window shown of a file that has several.

    Attributes:
        page: from 1.
        pages: how many there are.
        bands: shown as red, green and blue, from 1; none where the file has no more than colours.
        of_bands: how many there are.
        window: by default or by the file; None where a person chose it, or without any.
        is_stated: whether the file states that window.
    """

    page: int = 1
    pages: int = 1
    bands: tuple[int, ...] = ()
    of_bands: int = 0
    window: Window | None = None
    is_stated: bool = False

    @property
    def note(self) -> str:
        """One line about the selection and how to choose another; empty without a choice."""
        notes = []
        if self.pages > 1:
            notes.append(
                say(
                    "Page {page} of {pages:,}; read_image(path, page=…) chooses another.",
                    page=self.page,
                    pages=self.pages,
                )
            )
        if self.bands:
            notes.append(
                say(
                    "Bands {bands} of {count} as red, green and blue; read_image(path, "
                    "bands=(3, 2, 1)) chooses others.",
                    bands=joined(map(str, self.bands)),
                    count=self.of_bands,
                )
            )
        if self.window is not None:
            level, width = (f"{number:.6g}" for number in self.window)
            text = (
                say(
                    "Greys in the window that the file states, level {level} and width {width}; "
                    "read_image(path, window=(level, width)) chooses another.",
                    level=level,
                    width=width,
                )
                if self.is_stated
                else say(
                    "Greys in a window of level {level} and width {width}, their 0.5th to 99.5th "
                    "percentile; read_image(path, window=(level, width)) chooses another.",
                    level=level,
                    width=width,
                )
            )
            notes.append(text)
        return sentences(*notes)


WHOLE_FILE = Selection()


def checked(
    window: Sequence[float] | None, page: int | None, bands: Sequence[int] | None
) -> Choices:
    """Return the choices of a person, checked.

    Raises:
        ImageError: a choice makes no sense.
    """
    if window is not None and not _is_window(window):
        raise ImageError(
            say(
                "window={window} is no window; give its level and its width above 0, such as "
                "(40, 400).",
                window=shorten(repr(window)),
            )
        )
    if page is not None and not _is_count(page):
        raise ImageError(
            say(
                "page={page} is no page; pages are counted from 1.",
                page=shorten(repr(page)),
            )
        )
    if bands is not None and not (_has(3, bands) and all(map(_is_count, bands))):
        raise ImageError(
            say(
                "bands={bands} are not three bands; give the numbers of those that are shown as "
                "red, green and blue, counted from 1, such as (3, 2, 1).",
                bands=shorten(repr(bands)),
            )
        )
    return Choices(
        None if window is None else (float(window[0]), float(window[1])),
        None if page is None else int(page),
        None if bands is None else tuple(map(int, bands)),
    )


def checked_selection(facts: Mapping[str, Any]) -> Selection | None:
    """Return the selection that a process sent, which may lie; None where it is impossible."""
    page, pages, count = (facts.get(name) for name in ("page", "pages", "of_bands"))
    window, bands = facts.get("window"), facts.get("bands")
    if not all(type(number) is int and 0 <= number < 10**6 for number in (page, pages, count)):
        return None
    if not (isinstance(bands, list) and len(bands) in (0, 3) and all(map(_is_count, bands))):
        return None
    if window is not None and not _is_window(window):
        return None
    return Selection(
        page=int(page or 1),
        pages=int(pages or 1),
        bands=tuple(bands),
        of_bands=int(count or 0),
        window=None if window is None else (float(window[0]), float(window[1])),
        is_stated=facts.get("is_stated") is True,
    )


def _has(length: int, value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) == length


def _is_window(value: Any) -> bool:
    try:
        level, width = map(float, value)
    except (TypeError, ValueError, OverflowError):
        return False
    return math.isfinite(level) and math.isfinite(width) and width > 0


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__") and 0 < value < 10**6


def page_count(data: bytes) -> int:
    """Return how many pages a TIFF has, up to `MOST_PAGES`; 1 of any other file, and a broken one.

    The pages are the chain of its directories.
    """
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None or len(data) < 16:
        return 1
    layout = _LAYOUTS.get(struct.unpack_from(f"{order}H", data, 2)[0])
    if layout is None:
        return 1
    at, offset_code, count_code, entry_bytes = layout
    offsets: set[int] = set()
    try:
        offset = struct.unpack_from(order + offset_code, data, at)[0]
        while offset and offset not in offsets and len(offsets) < MOST_PAGES:
            entries = struct.unpack_from(order + count_code, data, offset)[0]
            offsets.add(offset)
            after = offset + struct.calcsize(order + count_code) + entries * entry_bytes
            offset = struct.unpack_from(order + offset_code, data, after)[0]
    except (struct.error, OverflowError):  # it points past its end
        pass
    return max(1, len(offsets))


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


def checked_page(page: int | None, pages: int, name: str) -> int:
    """Return the chosen page, from 1; the first where none is chosen.

    Raises:
        ImageError: the page does not exist.
    """
    if page is None or page <= pages:
        return page or 1
    raise ImageError(
        say(
            "{file} has no page {page}: it has {pages:,}, counted from 1.",
            file=quoted(name),
            page=page,
            pages=pages,
        )
        if pages > 1
        else say(
            "{file} has no page {page}, but one alone; leave page= out.",
            file=quoted(name),
            page=page,
        )
    )
