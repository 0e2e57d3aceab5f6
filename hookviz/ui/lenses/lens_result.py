"""The result of a lens, panel by panel, whatever the lens."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import streamlit as st

from hookviz.drawing.charts import chart_png
from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.lenses.contract.result import LensResult
from hookviz.ui.state import plain

_SIDE_BY_SIDE = 3
_INK = {"dark": "#e8e6e3", "light": "#1a1a1a"}
_SMALL = 700  # pixels; a picture that is smaller is not stretched to the width of the page


def show_result(result: LensResult) -> None:
    """Show all panels in their order; pictures that follow each other stand side by side."""
    for kind, panels in groupby(result.panels, lambda panel: isinstance(panel, ImagePanel)):
        for row in _rows(list(panels), _SIDE_BY_SIDE if kind else 1):
            columns = st.columns(len(row), gap="medium") if len(row) > 1 else [st.container()]
            for column, panel in zip(columns, row, strict=True):
                with column:
                    _SHOW[type(panel)](panel)


def _rows(panels: list[Panel], count: int) -> Iterator[list[Panel]]:
    for start in range(0, len(panels), count):
        yield panels[start : start + count]


def _show_grid(panel: GridPanel) -> None:
    grid = panel.grid
    _title(panel.title)
    wide = grid.geometry.width > _SMALL
    st.image(grid.png(), width="stretch" if wide else grid.geometry.width, alt=panel.alt)
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


def _show_chart(panel: ChartPanel) -> None:
    _title(panel.title)
    ink = _INK["dark" if st.context.theme.type == "dark" else "light"]
    st.image(chart_png(panel, ink=ink), width="stretch", alt=panel.alt)
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
    GridPanel: _show_grid,
    ImagePanel: _show_image,
    TablePanel: _show_table,
    ChartPanel: _show_chart,
    TextPanel: _show_text,
}
