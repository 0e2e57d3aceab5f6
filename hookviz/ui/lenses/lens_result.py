"""The result of a lens, panel by panel, whatever the lens."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import streamlit as st

from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.lenses.contract.result import LensResult
from hookviz.ui.components.chart import chart
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.state import Cell, plain

_SIDE_BY_SIDE = 3
_SMALL = 700  # pixels; a picture that is smaller is not stretched to the width of the page
_GRID_HEIGHT = 420  # pixels that a grid of channels has at most, where its tiles can be so small

Leads = Callable[[str], Callable[[int, Cell | None, Cell], None] | None]
"""From a layer to what is done when one of its channels is picked; None where nothing can be."""


def show_result(result: LensResult, leads: Leads) -> None:
    """Show all panels in their order; pictures that follow each other stand side by side.

    Grids that are states of one thing stand in one place, and a switch flips between them.
    """
    for kind, panels in groupby(result.panels, _kind):
        if kind and kind[0] is GridPanel:
            states = [panel for panel in panels if isinstance(panel, GridPanel)]
            _show_grid(_flipped(states, result.lens), leads)
            continue
        for row in _rows(list(panels), _SIDE_BY_SIDE if kind else 1):
            columns = st.columns(len(row), gap="medium") if len(row) > 1 else [st.container()]
            for column, panel in zip(columns, row, strict=True):
                with column:
                    if isinstance(panel, GridPanel):
                        _show_grid(panel, leads)
                    elif isinstance(panel, ChartPanel):
                        _show_chart(panel, leads)
                    else:
                        _SHOW[type(panel)](panel)


def _kind(panel: Panel) -> tuple[Any, ...]:
    """What panels have in common that are shown together."""
    if isinstance(panel, ImagePanel):
        return (ImagePanel,)
    return (GridPanel, panel.title) if isinstance(panel, GridPanel) and panel.state else ()


def _rows(panels: list[Panel], count: int) -> Iterator[list[Panel]]:
    for start in range(0, len(panels), count):
        yield panels[start : start + count]


def _flipped(states: Sequence[GridPanel], lens: str) -> GridPanel:
    """The state that is looked at; all are drawn in the same place."""
    names = [panel.state for panel in states]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(plain(states[0].title), anchor=False, width="content")
        chosen = st.segmented_control(
            "State",
            names,
            default=names[-1],
            required=True,
            key=f"state {lens} {states[0].title}",
            label_visibility="collapsed",
        )
    return states[names.index(chosen or names[-1])]


def _show_grid(panel: GridPanel, leads: Leads) -> None:
    grid = panel.grid
    if not panel.state:
        _title(panel.title)
    picked = leads(panel.layer) if panel.layer else None
    if picked is None:
        wide = grid.geometry.width > _SMALL
        st.image(grid.png(), width="stretch" if wide else grid.geometry.width, alt=panel.alt)
    else:
        size = grid.shape[1:]
        mosaic(
            grid,
            panel.alt,
            None,
            lambda channel, cell: picked(channel, cell, size),
            key=f"grid {panel.title}",
            height=_GRID_HEIGHT,
        )
    st.caption(plain(" ".join(filter(None, (panel.caption, grid.legend)))))


def _show_image(panel: ImagePanel) -> None:
    _title(panel.title)
    width = panel.picture.shape[1]
    st.image(panel.picture, width="stretch" if width > _SMALL // 2 else width, alt=panel.alt)
    if panel.caption:
        st.caption(plain(panel.caption))


def _show_table(panel: TablePanel) -> None:
    _title(panel.title)
    columns = {name: [row[at] for row in panel.rows] for at, name in enumerate(panel.columns)}
    st.dataframe(columns, hide_index=True, width="stretch", key=f"table {panel.title}")
    if panel.caption:
        st.caption(plain(panel.caption))


def _show_chart(panel: ChartPanel, leads: Leads) -> None:
    _title(panel.title)
    picked = leads(panel.layer) if panel.layer else None

    def lead(position: int) -> None:
        assert picked is not None
        picked(int(panel.labels[position]), None, (0, 0))

    chart(panel, f"chart {panel.title}", lead if picked else None)
    if panel.caption:
        st.caption(plain(panel.caption))


def _show_text(panel: TextPanel) -> None:
    show: Callable[..., Any] = {
        "good": st.success,
        "bad": st.error,
        "note": st.info,
    }.get(panel.tone, st.markdown)
    show(plain(panel.text))


def _title(text: str) -> None:
    st.subheader(plain(text), anchor=False)


_SHOW: dict[type[Panel], Callable[[Any], None]] = {
    ImagePanel: _show_image,
    TablePanel: _show_table,
    TextPanel: _show_text,
}
