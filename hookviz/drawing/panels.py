"""Declare the kinds of panels that a lens gives, each with how a notebook and a shell show it."""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hookviz import markup
from hookviz.drawing import notebook
from hookviz.drawing.charts import Chart, chart_png
from hookviz.drawing.grid import Grid
from hookviz.drawing.layout import Geometry
from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import joined, sentences
from hookviz.types import Model, Pixels
from hookviz.wording import csv_cell, text_table


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

        Args:
            stem: the name without its ending; a `FilePanel` has a name of its own.
            model: the model that was looked at.
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
        return notebook.titled(self.heading, markup.image(self.grid.png(), self.alt), caption)

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
        return notebook.titled(self.title, picture, self.caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.picture))


@dataclass(frozen=True, eq=False, slots=True)
class PicturesPanel(Panel):
    """A row of small square pictures, each with a name and a few signs under it.

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
        return notebook.titled(self.title, picture + names, self.caption)

    def _text(self) -> str:
        return f"{self.title}: {self._named()}"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", encode_png(self.strip()))


Cell = str | int | float
_MOST_UNFOLDED_ROWS = 30  # of a table in a notebook


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
        return notebook.titled(self.title, html, self.caption)

    def _text(self) -> str:
        rows = [tuple(map(_cell_text, row)) for row in self._indented("  ")]
        lines = f"\n{self.title}\n{text_table(self.columns, rows)}"
        return f"{lines}\n{self.caption}" if self.caption else lines

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.csv", self.csv().encode())


def _cell_text(cell: Cell) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True, eq=False, slots=True)
class ChartPanel(Chart, Panel):
    """A chart with words under it.

    Attributes:
        layer: whose channels the places are, `labels` being their numbers; else empty.
    """

    caption: str = ""
    layer: str = ""

    def _html(self) -> str:
        # half the dots of a chart on the page, since a notebook shows it dot by dot
        picture = markup.image(chart_png(self, ink=notebook.INK, dpi=80), self.alt)
        return notebook.titled(self.title, picture, self.caption)

    def _text(self) -> str:
        return f"[{self.title}]"

    def _file(self, stem: str, _model: Model) -> PanelFile:
        return PanelFile(f"{stem}.png", chart_png(self))


@dataclass(frozen=True, slots=True)
class TextPanel(Panel):
    """A sentence or two. `tone` is ``"plain"``, ``"good"``, ``"bad"`` or ``"note"``."""

    text: str
    tone: str = "plain"

    def _html(self) -> str:
        edge = notebook.EDGES.get(self.tone)
        style = f"border-left: 4px solid {edge}; padding-left: 8px" if edge else ""
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
        return notebook.titled(self.title, markup.element("p", self.name), self.caption)

    def _text(self) -> str:
        return f"[{self.title}: -o writes {self.name}]"

    def _file(self, _stem: str, model: Model) -> PanelFile:
        return PanelFile(self.name, self.make(model))
