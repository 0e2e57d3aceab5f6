"""Count the pages of a TIFF, without decoding any, and check which is chosen."""

import struct

from hookviz.errors import ImageError
from hookviz.language.saying import say
from hookviz.reader.wall import quoted

MOST_PAGES = 10_000

# Of TIFF 6.0 and of BigTIFF, by the version in the head: where the first directory's offset is, the
# code of an offset, the code of a count of entries, and the bytes of an entry.
_LAYOUTS = {42: (4, "I", "H", 12), 43: (8, "Q", "Q", 20)}


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
    seen: set[int] = set()
    try:
        offset = struct.unpack_from(order + offset_code, data, at)[0]
        while offset and offset not in seen and len(seen) < MOST_PAGES:
            entries = struct.unpack_from(order + count_code, data, offset)[0]
            seen.add(offset)
            after = offset + struct.calcsize(order + count_code) + entries * entry_bytes
            offset = struct.unpack_from(order + offset_code, data, after)[0]
    except (struct.error, OverflowError):  # it points past its end
        pass
    return max(1, len(seen))


def checked_page(page: int | None, pages: int, name: str) -> int:
    """Return the chosen page, from 1; the first where none is chosen.

    Raises:
        ImageError: there is no such page.
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
