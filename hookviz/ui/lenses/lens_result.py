"""Show the result of a lens, panel by panel, whatever the lens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from hookviz.drawing.maps_panel import MapsPanel
from hookviz.drawing.panels import (
    ChartPanel,
    FilePanel,
    GridPanel,
    ImagePanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
)
from hookviz.drawing.tree_panel import TreePanel
from hookviz.language.saying import say
from hookviz.lenses.contract.result import LensResult
from hookviz.types import Model
from hookviz.ui.components.chart import chart
from hookviz.ui.components.maps import show_maps
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.components.tree import tree
from hookviz.ui.state import Cell, plain

AnyPanel = TypeVar("AnyPanel", bound=Panel)

_SIDE_BY_SIDE = 3
_MOST_LARGE = 6  # pictures that follow each other; more of them are shown smaller
_SMALL_SIDE_BY_SIDE = 6
_SMALL = 700  # pixels; a picture that is smaller is not stretched to the width of the page
_PICTURE = 104  # pixels on the screen of a small picture among others
_GRID_HEIGHT = 420  # pixels that a grid of channels has at most, where its tiles can be so small


@dataclass(frozen=True, slots=True)
class PanelCallbacks:
    """Callbacks by which a panel leads to a channel or an image.

    Attributes:
        channel: from a layer to what is done when one of its channels is picked; None where nothing
            can be.
        image: from an image's digest to what looks at that image; None where nothing can.
        model: what a file is made of.
    """

    channel: Callable[[str], Callable[[int, Cell | None, Cell], None] | None]
    image: Callable[[str], Callable[[], None] | None]
    model: Model


def show_result(result: LensResult, callbacks: PanelCallbacks) -> None:
    """Show all panels in their order; pictures that follow each other stand side by side.

    Grids that are states of one thing stand in one place, and a switch flips between them.
    """
    for kind, panels in groupby(result.panels, _kind):
        if kind and kind[0] is GridPanel:
            states = [panel for panel in panels if isinstance(panel, GridPanel)]
            _show_grid(_flipped(states, result.lens), callbacks)
            continue
        listed = list(panels)
        if len(listed) > _MOST_LARGE and kind == (ImagePanel,):
            _show_many([panel for panel in listed if isinstance(panel, ImagePanel)])
            continue
        for row in _rows(listed, _SIDE_BY_SIDE if kind else 1):
            columns = st.columns(len(row), gap="medium") if len(row) > 1 else [st.container()]
            for column, panel in zip(columns, row, strict=True):
                with column:
                    _WIDGETS[type(panel)](panel, callbacks)


def _kind(panel: Panel) -> tuple[Any, ...]:
    """Return what panels have in common that are shown together."""
    if isinstance(panel, ImagePanel):
        return (ImagePanel,)
    return (GridPanel, panel.title) if isinstance(panel, GridPanel) and panel.state else ()


def _rows(panels: list[AnyPanel], count: int) -> Iterator[list[AnyPanel]]:
    for start in range(0, len(panels), count):
        yield panels[start : start + count]


def _flipped(states: Sequence[GridPanel], lens: str) -> GridPanel:
    """Let a person switch between states of one grid, and return the one that is looked at."""
    names = [panel.state for panel in states]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(states[0].title), anchor=False, width="content")
        chosen = st.segmented_control(
            say("State"),
            names,
            default=names[-1],
            required=True,
            key=f"state {lens} {states[0].title}",
            label_visibility="collapsed",
        )
    return states[names.index(chosen or names[-1])]


def _show_grid(panel: GridPanel, callbacks: PanelCallbacks) -> None:
    grid = panel.grid
    if not panel.state:
        _title(panel.title)
    picked = callbacks.channel(panel.layer) if panel.layer else None
    if picked is None:
        wide = grid.geometry.width > _SMALL
        st.image(grid.png(), width="stretch" if wide else grid.geometry.width, alt=panel.alt)
    else:
        size = grid.shape[1:]
        mosaic(
            grid,
            panel.alt,
            lambda channel, cell: picked(channel, cell, size),
            key=f"grid {panel.title}",
            height=_GRID_HEIGHT,
        )
    st.caption(plain(" ".join(filter(None, (panel.caption, grid.legend)))))


def _show_image(panel: ImagePanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    width = panel.picture.shape[1]
    st.image(panel.picture, width="stretch" if width > _SMALL // 2 else width, alt=panel.alt)
    _caption(panel.caption)


def _show_many(panels: list[ImagePanel]) -> None:
    """Show more pictures than one looks at one by one, smaller and with smaller titles."""
    for row in _rows(panels, _SMALL_SIDE_BY_SIDE):
        for column, panel in zip(st.columns(_SMALL_SIDE_BY_SIDE, gap="small"), row, strict=False):
            with column:
                st.image(panel.picture, width="stretch", alt=panel.alt)
                st.caption(plain(" · ".join(filter(None, (panel.title, panel.caption)))))


def _show_pictures(panel: PicturesPanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    with st.container(horizontal=True, gap="small"):
        for picture, name, note in zip(panel.pictures, panel.names, panel.notes, strict=True):
            with st.container(width=_PICTURE):
                if picture is None:
                    st.image(
                        np.full((_PICTURE, _PICTURE, 3), 128, np.uint8), alt=say("No picture here")
                    )
                else:
                    st.image(picture, width=_PICTURE, alt=name)
                st.caption(f"**{plain(note)}** {plain(name)}")
    _caption(panel.caption)


def _show_table(panel: TablePanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    columns = {say(name): [row[at] for row in panel.rows] for at, name in enumerate(panel.columns)}
    st.dataframe(columns, hide_index=True, width="stretch", key=f"table {panel.title}")
    _caption(panel.caption)


def _show_tree(panel: TreePanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    tree(panel, f"tree {panel.title}")
    _caption(panel.caption)


def _show_chart(panel: ChartPanel, callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    picked = callbacks.channel(panel.layer) if panel.layer else None

    def lead(position: int) -> None:
        assert picked is not None
        picked(int(panel.labels[position]), None, (0, 0))

    chart(panel, f"chart {panel.title}", lead if picked else None)
    _caption(panel.caption)


def _show_file(panel: FilePanel, callbacks: PanelCallbacks) -> None:
    """Offer the file, which is made when it is asked for."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            panel.title,
            partial(panel.make, callbacks.model),
            panel.name,
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )
        _caption(panel.caption)


def _show_maps(panel: MapsPanel, callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    to_channel = callbacks.channel(panel.layer) if panel.layer else None
    to_images = [callbacks.image(each.digest) for each in panel.maps]

    def lead(position: int) -> None:
        to_image = to_images[position]
        assert to_image is not None
        assert to_channel is not None
        to_image()
        to_channel(panel.channel, None, (0, 0))

    leading = [
        place for place, way in enumerate(to_images) if way is not None and to_channel is not None
    ]
    show_maps(panel, f"maps {panel.title}", leading, lead)
    _caption(panel.caption)


def _show_text(panel: TextPanel, _callbacks: PanelCallbacks) -> None:
    show: Callable[..., Any] = {
        "good": st.success,
        "bad": st.error,
        "note": st.info,
    }.get(panel.tone, st.markdown)
    show(plain(panel.text))


def _title(text: str) -> None:
    st.subheader(plain(text), anchor=False)


def _caption(text: str) -> None:
    if text:
        st.caption(plain(text))


_WIDGETS: dict[type[Panel], Callable[[Any, PanelCallbacks], None]] = {
    ChartPanel: _show_chart,
    FilePanel: _show_file,
    GridPanel: _show_grid,
    ImagePanel: _show_image,
    MapsPanel: _show_maps,
    PicturesPanel: _show_pictures,
    TablePanel: _show_table,
    TextPanel: _show_text,
    TreePanel: _show_tree,
}
"""What shows each kind of panel on the page."""
