"""Mark a region of the picture that a network sees: as text, and over the cells of a map."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.errors import SettingError, shorten
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.parameters import LensSubject, Parameter

Floats = NDArray[np.float64]
_NUMBER = r"(\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})"
_RECTANGLE = re.compile("rect:" + ",".join([_NUMBER] * 4), re.ASCII)
_BRUSH = re.compile(r"brush:(\d{1,7})x(\d{1,7}):(\d{1,8}(?:\.\d{1,8})*)", re.ASCII)
_MOST_CELLS = 1 << 22  # of a mask: a link may ask for any
_MOST_LETTERS = 8 * _MOST_CELLS
_WANTED = mark(
    'a region such as "rect:0.25,0.25,0.75,0.75" (left, top, right, bottom as '
    "shares of the picture), or a mask (H, W) of truth values"
)


class Region(str):
    """Region as text, which can be laid over the cells of a map.

    ``rect:LEFT,TOP,RIGHT,BOTTOM`` in shares of the input's picture, 0…1 from its top left corner;
    or ``brush:COLUMNSxROWS:RUNS`` of a mask over all of the picture, row by row: how many of its
    cells are not marked, how many then are, and so on in turn, with dots between. What is left at
    the end is not marked.

    >>> from hookviz.lenses.contract.regions import Region
    >>> Region("rect:0,0,0.5,1").cover(1, 4)  # (rows, columns)
    array([[1., 1., 0., 0.]])
    >>> Region("brush:2x2:1.1").cover(1, 2)  # the upper right quarter
    array([[0. , 0.5]])
    """

    __slots__ = ()

    def cover(self, rows: int, columns: int) -> Floats:
        """Return the share of each cell's area that is marked, 0…1, ``(rows, columns)``.

        The cells are those of a map over the whole picture, all of one size.

        Raises:
            SettingError: the text is no region.
        """
        return covered(*self._marks(), rows, columns)

    @property
    def area(self) -> float:
        """Share of the picture that is marked, 0…1."""
        return float(self.cover(1, 1)[0, 0])

    def _marks(self) -> tuple[Floats, Floats, Floats]:
        """Return what is marked, 0 or 1, ``(n, m)``, and the edges of its rows and columns."""
        if match := _RECTANGLE.fullmatch(self):
            if max(map(float, match.groups())) <= 1:
                return rectangle_marks(self)
        elif match := _BRUSH.fullmatch(self[:_MOST_LETTERS]):
            cells, runs = int(match[1]) * int(match[2]), map(int, match[3].split("."))
            if 0 < cells <= _MOST_CELLS and sum(runs) <= cells:
                return brush_marks(match[0])
        raise SettingError(
            say("{value} is not {expected}.", value=shorten(repr(str(self))), expected=say(_WANTED))
        )


def rectangle_marks(text: str) -> tuple[Floats, Floats, Floats]:
    """Return 1 for what is marked, ``(1, 1)``, and the edges of its rows and of its columns."""
    left, top, right, bottom = map(float, text.removeprefix("rect:").split(","))
    return np.ones((1, 1)), np.sort((top, bottom)), np.sort((left, right))


def brush_marks(text: str) -> tuple[Floats, Floats, Floats]:
    """Return which cells are marked, 0 or 1, and the edges of their rows and of their columns."""
    size, written = text.removeprefix("brush:").split(":")
    columns, rows = map(int, size.split("x"))
    runs = [int(run) for run in written.split(".")]
    marks = np.zeros(rows * columns)
    marks[: sum(runs)] = np.repeat(np.arange(len(runs)) % 2, runs)
    edges = np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)
    return marks.reshape(rows, columns), *edges


def covered(marks: Floats, down: Floats, across: Floats, rows: int, columns: int) -> Floats:
    """Return the share of each cell of a map that is marked, 0…1, ``(rows, columns)``."""
    shares = overlap(down, rows) @ marks @ overlap(across, columns).T
    return np.clip(shares, 0, 1)  # a sum of many shares may end a rounding above 1


def overlap(edges: Floats, count: int) -> Floats:
    """Return the share of each of `count` equal parts of 0…1 between each two edges."""
    parts = np.linspace(0, 1, count + 1)
    low = np.maximum(parts[:-1, None], edges[None, :-1])
    high = np.minimum(parts[1:, None], edges[None, 1:])
    shares: Floats = np.clip(high - low, 0, None) * count
    return shares


NOTHING = Region("rect:0,0,0,0")
"""The region that marks nothing."""


def region_of(mask: NDArray[np.bool_]) -> Region:
    """Return the region that a mask over all of the picture, ``(H, W)``, marks."""
    flat = np.concatenate([[False], mask.reshape(-1), [False]])  # the first run is of unmarked ones
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(np.concatenate([[0], ends])) if len(ends) else np.zeros(1, int)
    return Region(f"brush:{mask.shape[1]}x{mask.shape[0]}:{'.'.join(map(str, runs))}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionChoice(Parameter):
    """Choice of a region as a `Region`, its text, or a mask ``(H, W)`` over all of the picture.

    Attributes:
        default: the text of what is marked where nothing is chosen.
    """

    name: str = "region"
    label: str = mark("Region")
    default: str = "rect:0.3,0.3,0.7,0.7"

    def resolve(self, value: Any, subject: LensSubject) -> Region:  # noqa: ARG002
        """Return the region.

        Raises:
            SettingError: the value is no region, or marks nothing.
        """
        region = self._read(self.default if value is None else value)
        if not region.area > 0:
            raise SettingError(
                say(
                    "{name}={region} marks nothing of the picture. Mark some of it, for example "
                    "{example}.",
                    name=self.name,
                    region=shorten(repr(str(region))),
                    example=self.default,
                )
            )
        return region

    def _read(self, value: Any) -> Region:
        if isinstance(value, Tensor):
            value = value.cpu().numpy()
        if isinstance(value, np.ndarray):
            if value.dtype == np.bool_ and value.ndim == 2 and 0 < value.size <= _MOST_CELLS:
                return region_of(value)
            kind = say("an array of {dtype}, {shape}", dtype=value.dtype, shape=value.shape)
            raise SettingError(
                say(
                    "{name} is {kind}, not {expected} of at most {limit:,}.",
                    name=self.name,
                    kind=kind,
                    expected=say(_WANTED),
                    limit=_MOST_CELLS,
                )
            )
        if not isinstance(value, str):
            raise self.refuse(value, say(_WANTED))
        region = Region(value.strip())
        try:
            region.area  # noqa: B018 - reads it
        except SettingError:
            raise self.refuse(value, say(_WANTED)) from None
        return region
