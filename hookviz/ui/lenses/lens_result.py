"""Show the panels of a lens's result: pictures in boards that fit the window, others in order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from hookviz.drawing.attention_panel import AttentionPanel
from hookviz.drawing.panels import (
    FilePanel,
    MapsPanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
    TreePanel,
)
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import Model
from hookviz.ui.components.attention import show_attention
from hookviz.ui.components.panels import is_on_board, show_maps, show_panels, tree
from hookviz.ui.state import Cell, plain

_LONG_ROWS, _LONG_PX = 8, 300  # a table of eight rows and more gets a fixed height
_PICTURE_PX = 104  # of a small picture among others


@dataclass(frozen=True, slots=True)
class PanelCallbacks:
    """Callbacks by which a panel leads to a channel or an image.

    Attributes:
        channel: returns, for a layer, the callback of a picked channel; None without one.
        image: returns, for an image's digest, the callback that opens that image; None without one.
        model: the network, for panels that offer a file.
    """

    channel: Callable[[str], Callable[[int, Cell | None, Cell], None] | None]
    image: Callable[[str], Callable[[], None] | None]
    model: Model


def show_result(result: LensResult, callbacks: PanelCallbacks) -> None:
    """Show all panels: pictures in boards that fit the window, others in their order."""
    for position, part in enumerate(_parts(result.panels)):
        with st.container(key=f"hv-answer-{position}"):
            if isinstance(part, Panel):
                _WIDGETS[type(part)](part, callbacks)
            else:
                _show_board(part, callbacks)


def _parts(panels: Sequence[Panel]) -> Iterator[Panel | tuple[Panel, ...]]:
    """Yield boards of neighbouring pictures, each followed by the texts between them."""
    board: list[Panel] = []
    words: list[Panel] = []
    for panel in (*panels, None):
        if panel is not None and is_on_board(panel):
            board.append(panel)
        elif board and isinstance(panel, TextPanel):
            words.append(panel)
        else:
            if board:
                yield tuple(board)
            yield from words
            board, words = [], []
            if panel is not None:
                yield panel


def _show_board(panels: tuple[Panel, ...], callbacks: PanelCallbacks) -> None:
    """Show pictures, grids and charts side by side; their channels lead to the explorer."""

    def leads_to(layer: str) -> Callable[[int, Cell | None, Cell], None] | None:
        return callbacks.channel(layer) if layer else None

    show_panels(panels, leads_to, key=f"panels {type(panels[0]).__name__} {len(panels)}")


def _show_pictures(panel: PicturesPanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    with st.container(horizontal=True, gap="small"):
        for picture, name, note in zip(panel.pictures, panel.names, panel.notes, strict=True):
            with st.container(width=_PICTURE_PX):
                if picture is None:
                    grey = np.full((_PICTURE_PX, _PICTURE_PX, 3), 128, np.uint8)
                    st.image(grey, alt=say("No picture here"))
                else:
                    st.image(picture, width=_PICTURE_PX, alt=name)
                st.caption(f"**{plain(note)}** {plain(name)}")
    _caption(panel.caption)


def _show_table(panel: TablePanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    columns = {say(name): [row[at] for row in panel.rows] for at, name in enumerate(panel.columns)}
    st.dataframe(
        columns,
        hide_index=True,
        width="stretch",
        height="auto" if len(panel.rows) < _LONG_ROWS else _LONG_PX,
        key=f"table {panel.title}",
    )
    _caption(panel.caption)


def _show_tree(panel: TreePanel, _callbacks: PanelCallbacks) -> None:
    _title(panel.title)
    tree(panel, f"tree {panel.title}")
    _caption(panel.caption)


def _show_attention(panel: AttentionPanel, _callbacks: PanelCallbacks) -> None:
    show_attention(panel, "attention")


def _show_file(panel: FilePanel, callbacks: PanelCallbacks) -> None:
    """Show a button that makes and downloads the file."""
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
        position
        for position, to_image in enumerate(to_images)
        if to_image is not None and to_channel is not None
    ]
    show_maps(panel, f"maps {panel.title}", leading, lead)
    _caption(panel.caption)


def _show_text(panel: TextPanel, _callbacks: PanelCallbacks) -> None:
    if panel.tone == "answer":
        with st.container(key="hv-lens-says"):
            st.markdown(f"**{plain(panel.text)}**")
        return
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
    AttentionPanel: _show_attention,
    FilePanel: _show_file,
    MapsPanel: _show_maps,
    PicturesPanel: _show_pictures,
    TablePanel: _show_table,
    TextPanel: _show_text,
    TreePanel: _show_tree,
}
"""The widget of each kind of panel that stands by itself."""
