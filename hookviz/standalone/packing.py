"""Pack what a page keeps: answers of several languages in one, rows as columns, values as float16.

What ``blocks.js``, ``recorded.js`` and ``halves.js`` beside it unpack.
"""

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.explorer.encoding import largest

LANGUAGE, THEME = ".language", ".theme"
"""Keys of what differs; no layer is called so, for no part of a name is empty."""

_LARGEST = 15  # the power of two just above the largest value, as float16 keeps it
_SMALLEST = -1074  # the least power of two of a float64


def varied(name: str, variants: Sequence[Any]) -> Any:
    """Put answers of one form into one: what they agree on stands once.

    Args:
        name: under which what differs stands, `LANGUAGE` or `THEME`.
        variants: an answer for each of the languages or themes.

    >>> varied(".language", [{"rows": 3, "title": "Why?"}, {"rows": 3, "title": "为什么？"}])
    {'rows': 3, 'title': {'.language': ['Why?', '为什么？']}}
    """
    first = variants[0]
    if all(each == first and type(each) is type(first) for each in variants):
        return first
    if all(isinstance(each, Mapping) and each.keys() == first.keys() for each in variants):
        return {key: varied(name, [each[key] for each in variants]) for key in first}
    if all(isinstance(each, list | tuple) and len(each) == len(first) for each in variants):
        return [varied(name, each) for each in zip(*variants, strict=True)]
    return {name: list(variants)}


def columns(rows: Sequence[Any]) -> dict[str, Any]:
    """Return rows as columns, which take a fifth less: no name of a field is said twice.

    A node is ``{"same": value}`` where every row has it, ``{"fields": …}`` or ``{"parts": […]}``
    where every row has those fields or so many parts, and else ``{"rows": [a value for each]}``.

    >>> columns([{"a": 1, "b": 0}, {"a": 2, "b": 0}])
    {'fields': {'a': {'rows': [1, 2]}, 'b': {'same': 0}}}
    """
    first = rows[0]
    if all(row == first for row in rows):
        return {"same": first}
    if all(isinstance(row, Mapping) and row.keys() == first.keys() for row in rows):
        return {"fields": {key: columns([row[key] for row in rows]) for key in first}}
    if all(isinstance(row, list | tuple) and len(row) == len(first) for row in rows):
        return {"parts": [columns(part) for part in zip(*rows, strict=True)]}
    return {"rows": list(rows)}


def packed(facts: Any) -> str:
    """Return facts as JSON, deflated, in base64."""
    try:
        text = _json(facts)
    except ValueError:  # a number that JSON lacks
        text = _json(_without_non_finite(facts))
    return deflated(text.encode())


def deflated(data: bytes) -> str:
    """Return bytes deflated as ``DecompressionStream`` reads them, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


class Halves(NamedTuple):
    """Values as float16.

    Attributes:
        text: of all values, the low bytes before the high ones, deflated, in base64.
        power: a kept number is the value by 2 to this power, so that none is too large for float16.
        error: how far a kept value is from its own, at most.
    """

    text: str
    power: int
    error: float


def halves(values: NDArray[np.float32]) -> Halves:
    """Keep values as float16, scaled by a power of two; NaN and infinity stay what they are."""
    most = largest(values)
    power = _LARGEST - math.frexp(most)[1] if most else 0
    power = max(power, _SMALLEST)
    scaled = np.ldexp(values.astype(np.float64), power)
    with np.errstate(over="ignore"):
        kept = scaled.astype("<f2")
    with np.errstate(invalid="ignore"):  # infinity less itself
        error = np.abs(np.ldexp(kept.astype(np.float64), -power) - values)
    return Halves(_bytes_apart(kept), power, largest(error))


def whole_floats(values: NDArray[np.float32]) -> str:
    """Keep float32 values as they are, of each byte all before those of the next, deflated."""
    return _bytes_apart(values.astype("<f4"))


def _json(facts: Any) -> str:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _without_non_finite(value: Any) -> Any:
    """Return facts with None for NaN and infinity, as the client has them."""
    if isinstance(value, Mapping):
        return {key: _without_non_finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _bytes_apart(values: NDArray[Any]) -> str:
    apart = np.frombuffer(values.tobytes(), np.uint8).reshape(-1, values.itemsize).T
    return deflated(apart.tobytes())
