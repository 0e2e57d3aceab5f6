"""How the channels are drawn: scale, colours, order and how many."""

import streamlit as st

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.ui.state import View

_AUTOMATIC = "automatic"
_EVERY = "all"


def pick_view(channels: int) -> View:
    """Scale, colours, order and number of channels."""
    scale = st.selectbox(
        "Scale",
        list(SCALES),
        index=list(SCALES).index("percentile"),
        key="scale",
        bind="query-params",
        help="  \n".join(f"**{name}**: {meaning}" for name, meaning in SCALES.items()),
    )
    colours = st.selectbox("Colours", [_AUTOMATIC, *COLORMAPS], key="colours", bind="query-params")
    sort = st.selectbox("Sort by", list(SORTS), key="sort", bind="query-params")
    counts = [_EVERY, *(str(count) for count in (16, 64, 256) if count < channels)]
    top = st.selectbox("Channels", counts, key="top", bind="query-params")
    return View(
        sort=sort,
        top=None if top == _EVERY else int(top),
        scale=scale,
        colormap=_colormap(scale) if colours == _AUTOMATIC else colours,
    )


def _colormap(scale: str) -> str | None:
    """The automatic choice: signed values fade into the page, be it dark or light."""
    dark = st.context.theme.type == "dark"
    return "berlin" if dark and scale == "symmetric" else None
