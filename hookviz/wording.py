"""Write numbers, shapes, sizes and tables as people do."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from math import isfinite, isnan
from typing import Any

from hookviz.errors import shorten
from hookviz.language.saying import localised, say

_BYTES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_LEAST_SHARE = 0.001  # that has a digit
_EARLIEST_SHARE = 0.01  # of a run from which on its length can be told
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def times(shape: Sequence[int]) -> str:
    """Write a shape as people do: ``"64×112×112"``."""
    return "×".join(map(str, shape))


def number(value: float) -> str:
    """Write `value` to 3 significant digits: ``−1.32``, ``12,300``, ``4.1×10⁻⁵``."""
    if isnan(value):
        return "NaN"
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.2e}".split("e")
    power = int(exponent)
    if -4 < power < 6:
        text = f"{float(f'{mantissa}e{exponent}'):,.{max(0, 2 - power)}f}"
    else:
        text = f"{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    text = localised(text)
    return f"−{text}" if value < 0 else text


def one_line(text: str, most: int = 2000) -> str:
    r"""Write text that anybody gave so that a terminal and a log show it, and do nothing else.

    Line ends and control characters are escaped, as Python does; of a longer text `most` letters
    stay. Already escaped text stays as it is.

    >>> from hookviz.wording import one_line
    >>> one_line("conv\x1b[2J")
    'conv\\x1b[2J'
    """
    short = shorten(text, most)
    if short.isprintable():
        return short
    escaped = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in short
    )
    return shorten(escaped, most)


def csv_cell(cell: str | float) -> str | float:
    """Return a cell of a CSV file that a spreadsheet shows, and does not compute.

    Text that begins as formulas do gets an apostrophe (OWASP, "CSV Injection"); numbers stay.
    """
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        try:
            float(cell)
        except ValueError:
            return f"'{cell}"
    return cell


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()
) -> str:
    """Lay rows out under their headings, two spaces apart; the columns `right` end flush."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def read_numbers(parts: Iterable[Any], most: int) -> tuple[int, ...] | None:
    """Read what ``"0"``, ``7`` and ``"3-5"`` stand for, sorted, each once: ``(0, 3, 4, 5, 7)``.

    None where a part is no number and no span, or where more than `most` are asked for.
    """
    numbers: set[int] = set()
    asked = 0
    for part in parts:
        text = str(part).strip()
        span = re.fullmatch(r"(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?", text, re.ASCII)
        if not text:
            continue
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        asked += last - first + 1
        if first > last or asked > most:  # the same ones again and again, too
            return None
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def numbers_listed(numbers: Iterable[int]) -> str:
    """Write numbers as `read_numbers` reads them, split at the commas: ``"0,3-5,7"``."""
    spans: list[str] = []
    for _, run in groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0]):
        span = [value for _, value in run]
        spans.append(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}")
    return ",".join(spans)


def percent(share: float) -> str:
    """Write a share as people do: ``"55.8 %"``, ``"< 0.1 %"``."""
    if not isfinite(share):
        return number(share)
    least = 100 * _LEAST_SHARE
    if share < _LEAST_SHARE:
        return say("< {least:.1f} %", least=least)
    return say("{share:.1f} %", share=100 * share)


def byte_size(count: float) -> str:
    """Write a number of bytes in decimal units: ``"44.7 MB"``, ``"12.0 kB"``, ``"7 bytes"``."""
    for unit, size in _BYTES:
        if count >= size:
            return say("{size:.1f} {unit}", size=count / size, unit=unit)
    return say("{count:.0f} bytes", count=count)


def bytes_of(received: int, total: int) -> str:
    """Write how many bytes of the total have come: ``"12.3 of 87.3 MB"``.

    Gigabytes are counted in megabytes, so that a digit moves while one looks.
    """
    for unit, size in _BYTES[1:]:
        if total >= size:
            return say(
                "{received:.1f} of {total:.1f} {unit}",
                received=received / size,
                total=total / size,
                unit=unit,
            )
    return say("{received} of {total} bytes", received=received, total=total)


def memory_size(count: float) -> str:
    """Write memory in the megabytes of the ``HOOKVIZ_*_MB`` settings, 1024² bytes each."""
    return say("{count:,.0f} MB", count=count / 1024 / 1024)


def time_left(share: float, seconds: float) -> str:
    """Estimate how long a run still takes that has done `share` of its work in `seconds`.

    ``"about 40 s left"``, ``"about 3 min left"``; empty at the very start, and for the last second.
    """
    if share < _EARLIEST_SHARE:
        return ""
    left = seconds * (1 - share) / share
    if left < 1:
        return ""
    if left < 100:
        return (
            say("about {seconds:.0f} s left", seconds=left)
            if left < 10
            else say("about {seconds:.0f} s left", seconds=round(left, -1))
        )
    return say("about {minutes:.0f} min left", minutes=left / 60)
