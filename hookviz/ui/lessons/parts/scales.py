"""Draw one channel under several scales side by side, and all channels under the chosen one."""

from functools import partial

import streamlit as st

from hookviz.drawing.grid import Grid, make_grid
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.scales import PICKED, SCALES, weakest_channel
from hookviz.types import Activation
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.picks import choose, pick_channel, picked_channel, remember_shown
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_GRID_HEIGHT = 250  # pixels


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the picked channel, at first the weakest, and the grid that it is picked in."""
    weakest = weakest_channel(scene, options)
    channel = picked_channel(key, len(weakest.maps.values), weakest.channel)
    remember_shown(key, {PICKED: str(channel)}, {PICKED: str(weakest.channel)})
    names = _names()
    grids = {scale: _drawn(weakest.maps, scale) for scale in SCALES}
    st.markdown(
        plain(
            say(
                "**Channel {channel} of {layer}**, the same numbers each time:",
                channel=channel,
                layer=weakest.layer.name,
            )
        ).replace(r"\*\*", "**")
    )
    for column, (scale, grid) in zip(st.columns(len(grids)), grids.items(), strict=True):
        with column:
            st.image(grid.channel_png(channel, 8), width="stretch", alt=names[scale])
            st.caption(names[scale])
    scale = choose(
        st.segmented_control,
        say("All channels"),
        SCALES,
        key,
        "scale",
        first=SCALES[0],
        format_func=names.__getitem__,
        required=True,
    )
    grid = grids[scale]
    said = say("The channels of {layer}: a click shows one above.", layer=weakest.layer.name)
    mosaic(grid, said, partial(pick_channel, key), key=f"{key} grid", height=_GRID_HEIGHT)
    st.caption(plain(grid.legend))


def _names() -> dict[str, str]:
    return {
        "layer": say("one scale for the layer"),
        "channel": say("each channel its own"),
        "symmetric": say("zero in the middle"),
    }


def _drawn(maps: Activation, scale: str) -> Grid:
    return make_grid(maps, scale=scale, colormap=diverging() if scale == "symmetric" else None)
