"""A region of the picture that a network sees: as text, and laid over the cells of a map."""

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
    """A region as text, which can be laid over the cells of a map.

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
        """The share of each cell's area that is marked, 0…1, ``(rows, columns)``.

        The cells are those of a map over the whole picture, all of one size.

        Raises:
            SettingError: the text is no region.
        """
        marks, down, across = self._marks()
        covered = _overlap(down, rows) @ marks @ _overlap(across, columns).T
        shares: Floats = np.clip(covered, 0, 1)  # a sum of many shares may end a rounding above 1
        return shares

    @property
    def area(self) -> float:
        """The share of the picture that is marked, 0…1."""
        return float(self.cover(1, 1)[0, 0])

    def _marks(self) -> tuple[Floats, Floats, Floats]:
        """What is marked, 0 or 1, ``(n, m)``, and the edges of its rows and of its columns."""
        if found := _RECTANGLE.fullmatch(self):
            left, top, right, bottom = map(float, found.groups())
            if max(left, top, right, bottom) <= 1:
                down, across = np.array(sorted((top, bottom))), np.array(sorted((left, right)))
                return np.ones((1, 1)), down, across
        elif found := _BRUSH.fullmatch(self[:_MOST_LETTERS]):
            columns, rows = int(found[1]), int(found[2])
            runs = [int(run) for run in found[3].split(".")]
            if 0 < rows * columns <= _MOST_CELLS and sum(runs) <= rows * columns:
                runs.append(rows * columns - sum(runs))
                marked = np.arange(len(runs)) % 2
                marked[-1] = 0
                marks = np.repeat(marked, runs).reshape(rows, columns).astype(np.float64)
                return marks, np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)
        raise SettingError(
            say("{value} is not {expected}.", value=shorten(repr(str(self))), expected=say(_WANTED))
        )


NOTHING = Region("rect:0,0,0,0")
"""The region that marks nothing."""


def region_of(mask: NDArray[np.bool_]) -> Region:
    """The region that a mask over all of the picture, ``(H, W)``, marks."""
    flat = np.concatenate([[False], mask.reshape(-1), [False]])  # the first run is of unmarked ones
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(np.concatenate([[0], ends])) if len(ends) else np.zeros(1, int)
    return Region(f"brush:{mask.shape[1]}x{mask.shape[0]}:{'.'.join(map(str, runs))}")


def _overlap(edges: Floats, count: int) -> Floats:
    """The share of each of `count` equal parts of 0…1 between each two edges, ``(count, n)``."""
    parts = np.linspace(0, 1, count + 1)
    low = np.maximum(parts[:-1, None], edges[None, :-1])
    high = np.minimum(parts[1:, None], edges[None, 1:])
    shares: Floats = np.clip(high - low, 0, None) * count
    return shares


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionChoice(Parameter):
    """A region of the picture as a `Region`, its text, or a mask ``(H, W)`` over all of it.

    Attributes:
        default: the text of what is marked where nothing is chosen.
    """

    name: str = "region"
    label: str = mark("Region")
    default: str = "rect:0.3,0.3,0.7,0.7"

    def resolve(self, value: Any, subject: LensSubject) -> Region:  # noqa: ARG002
        """The region.

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
