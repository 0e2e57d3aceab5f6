"""Declare the kinds of panels that a lens gives, each with how a notebook and a shell show it."""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np

from hookviz import markup
from hookviz.drawing import overlay
from hookviz.drawing.charts import Chart, chart_png
from hookviz.drawing.grid import Grid
from hookviz.drawing.layout import Geometry
from hookviz.drawing.pictures import encode_png, square
from hookviz.language.saying import joined, say, sentences
from hookviz.types import InputImage, Model, ModelInput, Pixels
from hookviz.wording import csv_cell, text_table

# Read on a white notebook and on a dark one: nobody tells us which it is.
_INK = "#7f7f7f"

_EDGES = {"good": "#2e8b57", "bad": "#c0392b", "note": "#2f6fb0"}  # beside a sentence of that tone

_OVERLAY_PX = 640  # longer side of a picture under a map

_ALL_ROWS = 16  # of a tree, which are so few that none is folded away
_SOME_ROWS, _MOST_ROWS = 6, 40  # that say something, and that one still takes in

Cell = str | int | float
_MOST_UNFOLDED_ROWS = 30  # of a table in a notebook


def _titled(title: str, html: str, caption: str) -> str:
    """Put a title above HTML and a caption below it, both escaped."""
    below = markup.element("p", caption, f"color: {_INK}") if caption else ""
    return f"{markup.element('h4', title)}{html}{below}"


class PanelFile(NamedTuple):
    """A panel as a file: its name in the folder, and its bytes."""

    name: str
    data: bytes


class Panel(ABC):
    """Part of a lens's result, which knows how a notebook and a shell show it.

    A kind of panel says by `_html`, `_text` and `_file` how it is shown there. The page has a
    widget for each kind, in `hookviz/ui/lenses/lens_result.py`.
    """

    __slots__ = ()

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that its pictures take."""
        return 0

    def html(self) -> str:
        """Draw it as HTML for a notebook, its pictures inside and every text escaped.

        Raises:
            SettingError: a chart's numbers do not fit its labels, as in `chart_figure`.
        """
        return f"<div>{self._html()}</div>"

    def printed(self) -> str:
        """Write it as text for a shell; what can't be written has its title in brackets."""
        return self._text()

    def file(self, stem: str, model: Model) -> PanelFile | None:
        """Draw it as a file called `stem` with an ending; None where it is text alone.

        `stem` is the name without its ending; a `FilePanel` has a name of its own.
        """
        return self._file(stem, model)

    @abstractmethod
    def _html(self) -> str: ...

    @abstractmethod
    def _text(self) -> str: ...

    @abstractmethod
    def _file(self, stem: str, model: Model, /) -> PanelFile | None: ...


@dataclass(frozen=True, eq=False, slots=True)
class GridPanel(Panel):
    """A grid of channels with its legend.

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
        """Title with the state."""
        return f"{self.title} {self.state}".rstrip()

    @property
    def alt(self) -> str:
        """Text for those who do not see the picture."""
        return f"{self.heading}: {self.grid.shown}. {self.grid.legend}"

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that the grid's levels take."""
        return self.grid.levels.nbytes

    def _html(self) -> str:
        caption = sentences(self.caption, self.grid.legend)
        return _titled(self.heading, markup.image(self.grid.png(), self.alt), caption)

    def _text(self) -> str:
        return f"[{self.heading}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", self.grid.png())


@dataclass(frozen=True, eq=False, slots=True)
class ImagePanel(Panel):
    """A picture, RGB uint8, ``(H, W, 3)``; `alt` says in words what it shows.

    Attributes:
        tiles: where its tiles lie, if it has any: the page writes their numbers on them.
    """

    title: str
    picture: Pixels = field(repr=False)
    alt: str
    caption: str = ""
    tiles: Geometry | None = field(default=None, repr=False)

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that the picture takes."""
        return self.picture.nbytes

    def _html(self) -> str:
        picture = markup.image(encode_png(self.picture), self.alt)
        return _titled(self.title, picture, self.caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.picture))


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class OverlayPanel(ImagePanel):
    """A map over a picture, whose opacity one chooses on the page.

    Attributes:
        lower, upper: the picture without the map, and with nothing but the map where there is one,
            RGB uint8 of the same ``(H, W, 3)``.
        opacity: of the map in `picture`, 0…1.
    """

    lower: Pixels = field(repr=False)
    upper: Pixels = field(repr=False)
    opacity: float

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that the three pictures take."""
        return 3 * self.picture.nbytes


def overlay_panel(
    title: str,
    model_input: ModelInput,
    image: InputImage | None,
    colours: Pixels,
    *,
    alt: str,
    caption: str = "",
    opacity: float = 0.6,
) -> OverlayPanel:
    """Return a coloured map, ``(rows, columns, 3)``, over the original where the network saw it.

    All that are made of one input have the same crop and scale. Where the original or the crop is
    not known, the map lies over all that the network saw.
    """
    whole, crop = overlay.original_and_crop(model_input, image)
    lower = overlay.shrunk(whole, _OVERLAY_PX)
    shown, upper = (
        overlay.laid_over(lower, colours, crop, whole.shape[:2], opacity=share)
        for share in (opacity, 1.0)
    )
    return OverlayPanel(title, shown, alt, caption, lower=lower, upper=upper, opacity=opacity)


@dataclass(frozen=True, eq=False, slots=True)
class PicturesPanel(Panel):
    """A row of small square pictures, each with a name and a few signs under it.

    Attributes:
        pictures: RGB uint8, ``(S, S, 3)``, all of one size; None for one that is not there.
        names: what each shows, as many.
        notes: a note on each, as many.
    """

    title: str
    pictures: tuple[Pixels | None, ...] = field(repr=False)
    names: tuple[str, ...]
    notes: tuple[str, ...]
    caption: str = ""

    def strip(self) -> Pixels:
        """Lay all of them in one row, with a grey square for each that is not there."""
        sides = [picture.shape[0] for picture in self.pictures if picture is not None]
        grey = np.full((sides[0] if sides else 1,) * 2 + (3,), 128, np.uint8)
        return np.hstack([grey if picture is None else picture for picture in self.pictures])

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that the pictures take."""
        return sum(picture.nbytes for picture in self.pictures if picture is not None)

    def _named(self) -> str:
        named = zip(self.names, self.notes, strict=True)
        return joined(f"{name} ({note})" for name, note in named)

    def _html(self) -> str:
        picture = markup.image(encode_png(self.strip()), self._named())
        names = markup.element("p", self._named())
        return _titled(self.title, picture + names, self.caption)

    def _text(self) -> str:
        return f"{self.title}: {self._named()}"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.strip()))


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
class MapsPanel(Panel):
    """A row of maps of several images, in the same colours, each beside its picture.

    Attributes:
        layer, channel: which channel's maps they are; an empty `layer` where they are of none.
    """

    title: str
    maps: tuple[ImageMap, ...]
    caption: str = ""
    layer: str = ""
    channel: int = 0

    def sheet(self, side: int = 128, columns: int = 4) -> Pixels:
        """Lay all of them out row by row, each `side` pixels high and twice as wide."""
        gap = np.full((side, side // 16, 3), 128, np.uint8)
        tiles = [
            np.hstack([square(each.picture, side), square(each.colours, side), gap])
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
        """Text for those who do not see the maps."""
        named = "; ".join(f"{each.name}: {each.says}" for each in self.maps)
        return say("{title}, each beside its picture. {maps}.", title=self.title, maps=named)

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that pictures and maps take."""
        return sum(each.picture.nbytes + each.colours.nbytes for each in self.maps)

    def _html(self) -> str:
        names = joined(f"{each.name} ({each.says})" for each in self.maps)
        caption = f"Row by row: {names}. {self.caption}"
        picture = markup.image(encode_png(self.sheet()), self.alt)
        return _titled(self.title, picture, caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.sheet()))


@dataclass(frozen=True, eq=False, slots=True)
class TablePanel(Panel):
    """A table of rows under headings; a cell is text or a number."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""

    def csv(self) -> str:
        """Write the table as comma-separated values, its headings first."""
        text = io.StringIO()
        rows = ([csv_cell(cell) for cell in row] for row in (self.columns, *self.rows))
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()

    def _indented(self, _sign: str) -> tuple[tuple[Cell, ...], ...]:
        """Return the rows, with the sign before the first cell for each level of nesting."""
        return self.rows

    def _html(self) -> str:
        html = markup.table(self.columns, self._indented("\N{EM SPACE}"))
        if len(self.rows) > _MOST_UNFOLDED_ROWS:
            html = markup.details(f"{len(self.rows):,} rows", html, is_open=False)
        return _titled(self.title, html, self.caption)

    def _text(self) -> str:
        rows = [tuple(map(_cell_text, row)) for row in self._indented("  ")]
        lines = f"\n{self.title}\n{text_table(self.columns, rows)}"
        return f"{lines}\n{self.caption}" if self.caption else lines

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.csv", self.csv().encode())


def _cell_text(cell: Cell) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True, eq=False, slots=True)
class TreePanel(TablePanel):
    """A table of nested rows: a row folds those below it that are deeper.

    Attributes:
        depths: of each row, in how many others it stands; 0 is outermost.
    """

    depths: tuple[int, ...] = ()

    @property
    def shown_depth(self) -> int:
        """Depth up to which rows are seen at first.

        Of a short tree these are all; else the outermost, or as many levels as say something.
        """
        if len(self.depths) <= _ALL_ROWS:
            return max(self.depths, default=0)
        counts = [sum(each <= depth for each in self.depths) for depth in sorted({*self.depths})]
        fitting = [depth for depth, count in enumerate(counts) if count <= _MOST_ROWS]
        telling = (depth for depth in fitting if counts[depth] >= _SOME_ROWS)
        return next(telling, fitting[-1] if fitting else 0)

    def _indented(self, sign: str) -> tuple[tuple[Cell, ...], ...]:
        return tuple(
            (f"{sign * depth}{row[0]}", *row[1:])
            for depth, row in zip(self.depths, self.rows, strict=True)
        )


@dataclass(frozen=True, eq=False, slots=True)
class ChartPanel(Chart, Panel):
    """A chart with words under it.

    Attributes:
        layer: whose channels the places are, `labels` being their numbers; else empty.
    """

    caption: str = ""
    layer: str = ""

    @classmethod
    def of(cls, chart: Chart, caption: str, layer: str = "") -> "ChartPanel":
        """Put words under a chart that something returned."""
        facts = {each.name: getattr(chart, each.name) for each in fields(Chart)}
        return cls(**facts, caption=caption, layer=layer)

    def _html(self) -> str:
        # half the dots of a chart on the page, since a notebook shows it dot by dot
        picture = markup.image(chart_png(self, ink=_INK, dpi=80), self.alt)
        return _titled(self.title, picture, self.caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", chart_png(self))


@dataclass(frozen=True, slots=True)
class TextPanel(Panel):
    """A sentence or two.

    `tone` is ``"plain"``, ``"good"``, ``"bad"``, ``"note"`` or ``"answer"``: what a lens says
    first, in plain words and bold.
    """

    text: str
    tone: str = "plain"

    def _html(self) -> str:
        edge = _EDGES.get(self.tone)
        style = f"border-left: 4px solid {edge}; padding-left: 8px" if edge else ""
        if self.tone == "answer":
            style = "font-size: 1.2em; font-weight: 600"
        return markup.element("p", self.text, style)

    def _text(self) -> str:
        return self.text

    def _file(self, _stem: str, _model: Model) -> None:
        return None


@dataclass(frozen=True, eq=False, slots=True)
class FilePanel(Panel):
    """A file to keep, which is made when somebody asks for it.

    Attributes:
        name: what the file is called.
        make: its bytes, of the model that was looked at; nothing of the model is kept for it.
    """

    title: str
    name: str
    make: Callable[[Model], bytes] = field(repr=False)
    caption: str = ""

    def _html(self) -> str:
        # nothing can be downloaded from a notebook's output: `make` gives the bytes there
        return _titled(self.title, markup.element("p", self.name), self.caption)

    def _text(self) -> str:
        return f"[{self.title}: -o writes {self.name}]"

    def _file(self, _stem: str, model: Model) -> PanelFile:
        return PanelFile(self.name, self.make(model))
