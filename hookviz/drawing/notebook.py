"""Panels as HTML, for a notebook that shows what a lens found."""

from collections.abc import Callable, Iterable
from typing import Any

from hookviz import markup
from hookviz.drawing.charts import chart_png
from hookviz.drawing.panels import (
    ChartPanel,
    FilePanel,
    GridPanel,
    ImagePanel,
    MapsPanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
    TreePanel,
)
from hookviz.drawing.pictures import encode_png

_INK = "#7f7f7f"  # read on a white notebook and on a dark one: which it is nobody tells us
_MOST_ROWS = 30  # that are not folded away
_EDGES = {"good": "#2e8b57", "bad": "#c0392b", "note": "#2f6fb0"}


def panels_html(panels: Iterable[Panel]) -> str:
    """All panels below each other, their pictures inside, every text escaped.

    Raises:
        SettingError: a chart's numbers do not fit its labels, as in `chart_figure`.
    """
    return "".join(f"<div>{_HTML[type(panel)](panel)}</div>" for panel in panels)


def _grid(panel: GridPanel) -> str:
    caption = " ".join(filter(None, (panel.caption, panel.grid.legend)))
    return _titled(panel.heading, markup.image(panel.grid.png(), panel.alt), caption)


def _image(panel: ImagePanel) -> str:
    return _titled(panel.title, markup.image(encode_png(panel.picture), panel.alt), panel.caption)


def _pictures(panel: PicturesPanel) -> str:
    said = [f"{name} ({note})" for name, note in zip(panel.names, panel.notes, strict=True)]
    picture = markup.image(encode_png(panel.strip()), ", ".join(said))
    return _titled(panel.title, picture + markup.element("p", ", ".join(said)), panel.caption)


def _maps(panel: MapsPanel) -> str:
    names = ", ".join(f"{each.name} ({each.says})" for each in panel.maps)
    caption = f"Row by row: {names}. {panel.caption}"
    return _titled(panel.title, markup.image(encode_png(panel.sheet()), panel.alt), caption)


def _table(panel: TablePanel) -> str:
    rows = panel.indented("\N{EM SPACE}") if isinstance(panel, TreePanel) else panel.rows
    html = markup.table(panel.columns, rows)
    if len(panel.rows) > _MOST_ROWS:
        html = markup.details(f"{len(panel.rows):,} rows", html, is_open=False)
    return _titled(panel.title, html, panel.caption)


def _chart(panel: ChartPanel) -> str:
    # half the dots of a chart on the page, since a notebook shows it dot by dot
    picture = markup.image(chart_png(panel, ink=_INK, dpi=80), panel.alt)
    return _titled(panel.title, picture, panel.caption)


def _text(panel: TextPanel) -> str:
    edge = _EDGES.get(panel.tone)
    style = f"border-left: 4px solid {edge}; padding-left: 8px" if edge else ""
    return markup.element("p", panel.text, style)


def _file(panel: FilePanel) -> str:
    # nothing can be downloaded from a notebook's output: the panel's own `make` gives the bytes
    return _titled(panel.title, markup.element("p", panel.name), panel.caption)


def _titled(title: str, html: str, caption: str) -> str:
    said = markup.element("p", caption, f"color: {_INK}") if caption else ""
    return f"{markup.element('h4', title)}{html}{said}"


_HTML: dict[type[Panel], Callable[[Any], str]] = {
    GridPanel: _grid,
    ImagePanel: _image,
    PicturesPanel: _pictures,
    MapsPanel: _maps,
    TablePanel: _table,
    TreePanel: _table,
    ChartPanel: _chart,
    TextPanel: _text,
    FilePanel: _file,
}
