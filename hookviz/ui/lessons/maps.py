"""Draw maps in the page's colours, and numbers as a table, for live parts."""

from html import escape
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.scales import Limits
from hookviz.language.saying import say
from hookviz.lessons.layers import Map
from hookviz.lessons.part import LessonScene
from hookviz.lessons.pictures import photograph
from hookviz.ui.theme import diverging
from hookviz.wording import number


def grid_of(
    maps: Map, title: str = "", *, top: int | None = None, limits: Limits | None = None
) -> Grid:
    """Draw maps ``(C, H, W)`` as the explorer does: blue below zero, red above, zero neutral.

    Args:
        maps: one or more.
        title: what they are called.
        top: how many channels to show, the strongest first; None shows all in their order.
        limits: those of another grid of as many channels, so that colours mean the same.
    """
    return make_grid(
        maps,
        sort="index" if top is None else "max",
        top=top,
        scale="balanced",
        colormap=_colours_of(maps if limits is None else limits.low),
        title=title,
        limits=limits,
    )


def show_on_photograph(scene: LessonScene, grid: Grid, channel: int) -> None:
    """Draw a channel's map of the grid laid over the lesson's image."""
    st.image(
        photograph(scene, grid.channel_pixels(channel)),
        width="stretch",
        output_format="JPEG",
        alt=say("The map of channel {channel} laid over the image.", channel=channel),
    )


def _colours_of(values: NDArray[np.floating[Any]]) -> str:
    """Return the colormap for such values, by whether any is below zero."""
    if bool((values < 0).any()):
        return diverging()
    return "inferno" if st.context.theme.type == "dark" else "gray_r"


def number_table(
    values: Map, title: str, *, taken: int = -1, gone: NDArray[np.bool_] | None = None
) -> str:
    """Return numbers ``(rows, columns)`` as a table with a title.

    Args:
        values: the numbers.
        title: what they are.
        taken: which of them stands out, counted row by row.
        gone: those that are struck through.
    """
    rows = []
    for row, line in enumerate(values):
        cells = ""
        for column, value in enumerate(line):
            kind = ""
            if row * len(line) + column == taken:
                kind = "taken"
            elif gone is not None and gone[row, column]:
                kind = "gone"
            cells += f'<td class="{kind}">{number(float(value))}</td>'
        rows.append(f"<tr>{cells}</tr>")
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="hv-weights">{caption}{"".join(rows)}</table>'
