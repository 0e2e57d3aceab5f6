"""Declare what can be chosen in the explorer, once: each field, its word in a link, its default.

The page's link, what a class follows, what a slide keeps and what the client draws all come from
this declaration; a new choice is a field here and whatever reads it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.language.saying import mark

AUTOMATIC = mark("automatic")
"""Scale or colours that follow from the values and the page."""
ALL = mark("all")
"""Show every channel; or: the map of every channel, not a patch of an atlas."""
CHANGE = mark("change")
"""Sort by how far A and B differ; of a pair alone."""
EVERY_CHANNEL = mark("every channel")
SUM, KERNEL, WALK, NUMBERS = "Sum", "Kernel", "Walk", "Numbers"
SPLIT, DIFFERENCE = mark("Split"), mark("Difference")
ALL_OF_IT = "/"
"""All of the network, of what one can be inside of on its map."""
LISTS = ("conv", "maps")
"""Which layers are listed: convolutions, or whatever puts out maps."""

_LONGEST = 1000  # letters of one value in a link
_Value = TypeVar("_Value")


class Choice(NamedTuple):
    """Declaration of a field of the view.

    Attributes:
        word: its name in a link.
        default: its default as a link writes it; None where that depends on the network or image.
        values: all values as a link writes them; None where they depend on the network or image.
        is_page: whether the page around the explorer chooses it, with another subject.
        is_followed: whether a class follows its teacher's.
        is_for_others: whether a link for other people may have it.
    """

    word: str
    default: str | None = None
    values: tuple[str, ...] | None = None
    is_page: bool = False
    is_followed: bool = True
    is_for_others: bool = True


class Cell(NamedTuple):
    """Cell of a map, with the size of that map.

    The size keeps the position on the photograph when another layer's maps have another size.

    >>> Cell(3, 4, 8, 8).on(16, 16)
    (7, 9)
    """

    row: int
    column: int
    rows: int | None = None
    columns: int | None = None

    def on(self, rows: int, columns: int) -> tuple[int, int]:
        """Return row and column of the same position on a map of `rows` × `columns`."""
        row, column = self.row, self.column
        if self.rows is not None and self.columns is not None:
            row = int((row + 0.5) * rows / max(1, self.rows))
            column = int((column + 0.5) * columns / max(1, self.columns))
        return min(row, rows - 1), min(column, columns - 1)

    def __str__(self) -> str:
        """Write the cell as a link has it: ``"3,4,8,8"``."""
        return ",".join(str(part) for part in self if part is not None)


class HeldScale(NamedTuple):
    """Colour scale of a stream when its frame was frozen, for one layer.

    Attributes:
        of: key of the scaled layer: network, layer, shape and scale policy.
        low, high: the values of the end colours.
        is_signed: whether the colours are those of a layer with values below zero.
    """

    of: str
    low: float
    high: float
    is_signed: bool

    def __str__(self) -> str:
        """Write the scale as a link has it: ``"0a1b2c3d,-1.5,1.5,signed"``."""
        sign = "signed" if self.is_signed else "unsigned"
        return f"{self.of},{self.low!r},{self.high!r},{sign}"


class PictureRequest(NamedTuple):
    """Steps and seed of the picture that is made for a channel; a link has ``"256-0"``."""

    steps: int
    seed: int

    def __str__(self) -> str:
        """Write the request as a link has it."""
        return f"{self.steps}-{self.seed}"


MOST_STEPS = 2048
"""Steps of a picture of a channel, at most."""


def _chosen(
    word: str,
    value: _Value,
    default: str | None = None,
    values: tuple[str, ...] | None = None,
    **says: bool,
) -> _Value:
    """Declare a field with its `Choice`; `value` is its default."""
    chosen: _Value = field(
        default=value, metadata={"choice": Choice(word, default, values, **says)}
    )
    return chosen


@dataclass(frozen=True, slots=True)
class View:
    """Choices of a person in the explorer; a field without a choice is None or its default.

    Links have a word for each field (`choices`).

    >>> View.of_link({"layer": "conv1", "sort": "mean", "channel": "no"}).sort
    'mean'
    >>> View(layer="conv1", channel=3).link()
    {'layer': 'conv1', 'channel': '3'}
    """

    # chosen by the page around the explorer
    family: str | None = _chosen("family", None, "All families", is_page=True)
    network: str | None = _chosen("model", None, is_page=True)
    weights: str = _chosen("weights", "pretrained", "pretrained", is_page=True)
    silenced: str | None = _chosen("silenced", None, is_page=True)
    image: str = _chosen("image", "Samples", "Samples", is_page=True, is_followed=False)
    sample: str | None = _chosen("sample", None, is_page=True)
    upload: str | None = _chosen(
        "upload", None, is_page=True, is_followed=False, is_for_others=False
    )
    size: str | None = _chosen("size", None, is_page=True)
    whole: str | None = _chosen("whole", None, is_page=True)
    pinned: str | None = _chosen("a", None, is_page=True)
    # chosen in the explorer
    layers: str = _chosen("layers", "conv", "conv", LISTS)
    layer: str | None = _chosen("layer", None)
    after: str | None = _chosen("after", None)
    output: str | None = _chosen("output", None)
    frame: int | None = _chosen("frame", None)
    sort: str = _chosen("sort", "index", "index", (*SORTS, CHANGE))
    top: int | None = _chosen("top", None, ALL, (ALL, "16", "64", "256"))
    scale: str = _chosen("scale", AUTOMATIC, AUTOMATIC, (AUTOMATIC, *SCALES))
    colours: str = _chosen("colours", AUTOMATIC, AUTOMATIC, (AUTOMATIC, *COLORMAPS))
    held: HeldScale | None = _chosen(  # noqa: RUF009 - it declares a field
        "held", None, is_followed=False, is_for_others=False
    )
    patches: bool = _chosen("patches", False, "false", ("false", "true"))
    answers: str = _chosen("answers", EVERY_CHANNEL, EVERY_CHANNEL)
    channel: int | None = _chosen("channel", None)
    cell: Cell | None = _chosen("cell", None)  # noqa: RUF009 - it declares a field
    origin: str = _chosen("origin", SUM, SUM, (SUM, KERNEL, WALK, NUMBERS))
    made: PictureRequest | None = _chosen("made", None)  # noqa: RUF009 - as above
    inside: str | None = _chosen("inside", None)
    why: int | None = _chosen("why", None)
    compared: str = _chosen("compare", "B", "B", ("A", "B", SPLIT, DIFFERENCE))

    @classmethod
    def of_link(cls, link: Mapping[str, str]) -> "View":
        """Read a view from a link's parameters; invalid values are left at their defaults."""
        chosen: dict[str, Any] = {}
        for name, choice in choices().items():
            text = link.get(choice.word)
            if text is None or len(text) > _LONGEST:
                continue
            value = _READ.get(name, str)(text)
            if value is not None and (choice.values is None or text in choice.values):
                chosen[name] = value
        return cls(**chosen)

    def link(self) -> dict[str, str]:
        """Return the view as a link's parameters, in the order of the fields, without defaults."""
        written = {}
        for name, choice in choices().items():
            value = getattr(self, name)
            text = _written(value)
            if text is not None and text != choice.default:
                written[choice.word] = text
        return written


@cache
def choices() -> Mapping[str, Choice]:
    """Return the declaration of each field of a view, by the field's name."""
    return {each.name: each.metadata["choice"] for each in fields(View)}


def _written(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else None


def _cell(text: str) -> Cell | None:
    match = re.fullmatch(r"(\d{1,6}),(\d{1,6})(?:,(\d{1,6}),(\d{1,6}))?", text, re.ASCII)
    if match is None:
        return None
    rows, columns = (None if side is None else int(side) for side in (match[3], match[4]))
    return Cell(int(match[1]), int(match[2]), rows, columns)


def _held(text: str) -> HeldScale | None:
    number = r"(-?\d{1,40}(?:\.\d{1,40})?(?:e[-+]?\d{1,3})?)"
    match = re.fullmatch(rf"([0-9a-f]{{8}}),{number},{number},(un)?signed", text, re.ASCII)
    if match is None:
        return None
    low, high = float(match[2]), float(match[3])
    known = low <= high and isfinite(low) and isfinite(high)
    return HeldScale(match[1], low, high, match[4] is None) if known else None


def _request(text: str) -> PictureRequest | None:
    match = re.fullmatch(r"(\d{1,4})-(\d{1,9})", text, re.ASCII)
    if match is None or not 1 <= int(match[1]) <= MOST_STEPS:
        return None
    return PictureRequest(int(match[1]), int(match[2]))


_READ: Mapping[str, Any] = {
    "top": _number,
    "channel": _number,
    "frame": _number,
    "why": _number,
    "cell": _cell,
    "held": _held,
    "made": _request,
    "patches": lambda text: text == "true",
}
