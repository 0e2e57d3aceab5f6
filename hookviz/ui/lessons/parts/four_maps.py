"""Draw maps with letters side by side, and below each, where the lesson wants it, its kernel."""

from html import escape

import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.language.saying import say
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, fraction_text
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.four_maps import kernel_map, lettered
from hookviz.markup import data_url
from hookviz.ui.lessons.maps import grid_of


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the maps in their order; values below zero blue, above red, as everywhere."""
    named = options["named"] == "yes"
    tiles = "".join(
        _tile(scene, letter, name, named=named) for letter, name in lettered(options).items()
    )
    with st.container(key=f"{key}-maps"):
        st.html(f'<div class="hv-lettered{" named" if named else ""}">{tiles}</div>')


def _tile(scene: LessonScene, letter: str, name: str, *, named: bool) -> str:
    kernel = PRESETS[name]
    values = kernel_map(scene, kernel)
    grid = grid_of(values[None]) if (values < 0).any() else make_grid(values[None], colormap="gray")
    url = data_url(grid.channel_png(0, 2))
    title = say(TITLES[name])
    alt = (
        say("Map {letter}, made by the kernel for {kind}.", letter=letter, kind=title)
        if named
        else say("Map {letter}", letter=letter)
    )
    below = f"<figcaption>{escape(title)}{_table(kernel, title)}</figcaption>" if named else ""
    return (
        f'<figure><b aria-hidden="true">{letter}</b><img src="{url}" alt="{escape(alt)}">'
        f"{below}</figure>"
    )


def _table(kernel: Kernel, title: str) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{fraction_text(weight)}</td>' for weight in row)}</tr>"
        for row in kernel
    )
    says = escape(say("The kernel for {kind}", kind=title))
    return f'<table class="hv-weights" aria-label="{says}">{rows}</table>'
