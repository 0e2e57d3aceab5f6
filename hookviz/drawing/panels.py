"""What a lens gives: panels to look at and the numbers behind them."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid
from hookviz.types import Pixels


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
    places: str = "place in the order of execution"
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
        return f"Chart of {self.title}: {names}, over {len(self.labels)} places."


@dataclass(frozen=True, slots=True)
class TextPanel:
    """A sentence or two. `tone` is ``"plain"``, ``"good"``, ``"bad"`` or ``"note"``."""

    text: str
    tone: str = "plain"


Panel = GridPanel | ImagePanel | TablePanel | ChartPanel | TextPanel
