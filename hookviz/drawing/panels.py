"""What a lens gives: panels to look at and the numbers behind them."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.drawing.pictures import Resampling, resize
from hookviz.language.saying import mark, say
from hookviz.types import Model, Pixels


@dataclass(frozen=True, eq=False, slots=True)
class GridPanel:
    """Channels as a grid, with its colour bar and its legend.

    Attributes:
        layer: whose channels the tiles are, by their numbers; empty where they are no channels.
        state: which state of it this is, such as ``"before"``; grids of one title that follow each
            other are told apart by it.
    """

    title: str
    grid: Grid
    caption: str = ""
    layer: str = ""
    state: str = ""

    @property
    def heading(self) -> str:
        """The title with the state."""
        return f"{self.title} {self.state}".rstrip()

    @property
    def alt(self) -> str:
        """What it shows, in words."""
        return f"{self.heading}: {self.grid.shown}. {self.grid.legend}"


@dataclass(frozen=True, eq=False, slots=True)
class ImagePanel:
    """A picture, RGB uint8, ``(H, W, 3)``; `alt` says in words what it shows."""

    title: str
    picture: Pixels = field(repr=False)
    alt: str
    caption: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class PicturesPanel:
    """Small square pictures in a row, each with a name and a few signs under it.

    Attributes:
        pictures: RGB uint8, ``(S, S, 3)``, all of one size; None for one that is not there.
        names: what each shows, as many.
        notes: what is said of each, as many.
    """

    title: str
    pictures: tuple[Pixels | None, ...] = field(repr=False)
    names: tuple[str, ...]
    notes: tuple[str, ...]
    caption: str = ""

    def strip(self) -> Pixels:
        """All of them in one row, a grey square for each that is not there."""
        sides = [picture.shape[0] for picture in self.pictures if picture is not None]
        grey = np.full((sides[0] if sides else 1,) * 2 + (3,), 128, np.uint8)
        return np.hstack([grey if picture is None else picture for picture in self.pictures])


@dataclass(frozen=True, eq=False, slots=True)
class TablePanel:
    """Rows under headings; a cell is text or a number."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]
    caption: str = ""

    def csv(self) -> str:
        """The table as comma-separated values, its headings first."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()


_ALL_ROWS = 16  # of a tree, which are so few that none is folded away
_SOME_ROWS, _MOST_ROWS = 6, 40  # that say something, and that one still takes in


@dataclass(frozen=True, eq=False, slots=True)
class TreePanel(TablePanel):
    """A table whose rows stand in one another: a row folds those below it that are deeper.

    Attributes:
        depths: of each row, in how many others it stands; 0 is outermost.
    """

    depths: tuple[int, ...] = ()

    @property
    def shown_depth(self) -> int:
        """The rows that are seen at first: those up to this depth.

        Of a short tree these are all; else the outermost, or as many levels as say something.
        """
        if len(self.depths) <= _ALL_ROWS:
            return max(self.depths, default=0)
        counts = [sum(each <= depth for each in self.depths) for depth in sorted({*self.depths})]
        fitting = [depth for depth, count in enumerate(counts) if count <= _MOST_ROWS]
        reporter = (depth for depth in fitting if counts[depth] >= _SOME_ROWS)
        return next(reporter, fitting[-1] if fitting else 0)

    def indented(self, sign: str) -> tuple[tuple[str | int | float, ...], ...]:
        """The rows with `sign` before the first cell, once for each row that it stands in."""
        return tuple(
            (f"{sign * depth}{row[0]}", *row[1:])
            for depth, row in zip(self.depths, self.rows, strict=True)
        )


@dataclass(frozen=True, eq=False, slots=True)
class ChartPanel:
    """Numbers as bars or lines over places that have names.

    Attributes:
        labels: what stands under each place, in order.
        series: the numbers of each bar or line by its name, as many as `labels`; NaN leaves a gap.
        kind: ``"bars"`` or ``"lines"``.
        unit: what the numbers are, along the axis.
        places: what the places are, where there are too many for their labels.
        log: whether the axis is logarithmic; numbers of 0 and less are left out then.
        layer: whose channels the places are, `labels` being their numbers; else empty.
    """

    title: str
    labels: tuple[str, ...]
    series: Mapping[str, NDArray[np.float64]]
    kind: str = "bars"
    unit: str = ""
    places: str = mark("place in the order of execution")
    log: bool = False
    caption: str = ""
    layer: str = ""

    @property
    def is_signed(self) -> bool:
        """Whether it is bars of one series about zero, with a colour for either side."""
        values = list(self.series.values())
        return self.kind == "bars" and len(values) == 1 and bool((values[0] < 0).any())

    @property
    def alt(self) -> str:
        """What it shows, in words."""
        names = ", ".join(self.series)
        return say(
            "Chart of {title}: {series}, over {place_count} places.",
            title=self.title,
            series=names,
            place_count=len(self.labels),
        )


@dataclass(frozen=True, slots=True)
class TextPanel:
    """A sentence or two. `tone` is ``"plain"``, ``"good"``, ``"bad"`` or ``"note"``."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, eq=False, slots=True)
class FilePanel:
    """A file to keep, which is made when somebody asks for it.

    Attributes:
        name: what the file is called.
        make: its bytes, of the model that was looked at; nothing of the model is kept for it.
    """

    title: str
    name: str
    make: Callable[[Model], bytes] = field(repr=False)
    caption: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ImageMap:
    """A map beside the picture that it is of.

    Attributes:
        name: what the image is called.
        says: a few words on the map.
        picture: what the network saw, RGB uint8, ``(H, W, 3)``.
        colours: the map, RGB uint8, ``(rows, columns, 3)``: a pixel for every cell.
        digest: of the image, by which it is known again; empty where it was no image.
    """

    name: str
    says: str
    picture: Pixels = field(repr=False)
    colours: Pixels = field(repr=False)
    digest: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class MapsPanel:
    """Maps of several images side by side, in the same colours, each beside its picture.

    Attributes:
        layer, channel: which channel's maps they are; an empty `layer` where they are of none.
    """

    title: str
    maps: tuple[ImageMap, ...]
    caption: str = ""
    layer: str = ""
    channel: int = 0

    def sheet(self, side: int = 128, columns: int = 4) -> Pixels:
        """All of them as one picture, row by row: each `side` pixels high, twice as wide."""
        gap = np.full((side, side // 16, 3), 128, np.uint8)
        tiles = [
            np.hstack([_square(each.picture, side), _square(each.colours, side), gap])
            for each in self.maps
        ]
        tiles += [np.full_like(tiles[0], 128)] * (-len(tiles) % min(columns, len(tiles)))
        width = min(columns, len(tiles))
        rows = [np.hstack(tiles[start : start + width]) for start in range(0, len(tiles), width)]
        sheet: Pixels = np.vstack(
            [np.pad(row, ((0, 8), (0, 0), (0, 0)), constant_values=128) for row in rows]
        )
        return sheet

    @property
    def alt(self) -> str:
        """What it shows, in words."""
        named = "; ".join(f"{each.name}: {each.says}" for each in self.maps)
        return say("{title}, each beside its picture. {maps}.", title=self.title, maps=named)


def _square(picture: Pixels, side: int) -> Pixels:
    """The picture as a square of `side` pixels; what is small stays in sharp blocks."""
    method = Resampling.NEAREST if max(picture.shape) < side else Resampling.BILINEAR
    return resize(picture, (side, side), method)


Panel = (
    GridPanel
    | ImagePanel
    | PicturesPanel
    | TablePanel
    | TreePanel
    | ChartPanel
    | TextPanel
    | FilePanel
    | MapsPanel
)
