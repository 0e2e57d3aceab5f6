"""Draw the channels behind a ReLU, how many stay dead as images are added, and what wakes one."""

from functools import partial

import numpy as np
import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.dead_channels import DeadChannels, dead_channels
from hookviz.ui.components.chart import chart
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.picks import pick_channel, picked_channel
from hookviz.ui.lessons.picture_strip import show_pictures
from hookviz.ui.state import plain

_GRID_HEIGHT = 300  # pixels
_MOST = 108  # channels that are shown


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the grid, the channel that was picked, and the chart."""
    dead = dead_channels(scene, options)
    silent = np.flatnonzero(dead.silent[0])
    channel = picked_channel(key, dead.silent.shape[1], int(silent[0]) if len(silent) else 0)
    grid = make_grid(dead.maps, sort="zeros", top=_MOST, aspect=3)
    said = say(
        "Channels at {address}, most zeros first. A click tells what wakes one.",
        address=dead.address,
    )
    mosaic(grid, said, partial(pick_channel, key), key=f"{key} grid", height=_GRID_HEIGHT)
    st.caption(plain(said))
    st.markdown(plain(_about(dead, channel)))
    show_pictures(dead.woken_by(channel))
    panel = ChartPanel(
        say("Channels that stay dead"),
        tuple(str(index + 1) for index in range(len(dead.titles))),
        {say("channels dead on all of them"): dead.so_far.astype(np.float64)},
        unit=say("channels dead on all of the first images"),
        places=say("images"),
    )
    chart(panel, f"{key} chart", None)
    st.caption(plain(say("Along the bottom: how many images were looked at, yours first.")))


def _about(dead: DeadChannels, channel: int) -> str:
    """Return a sentence on where the channel answers."""
    facts = {"channel": channel}
    if not dead.silent[0, channel]:
        return say("Channel {channel} answers on this image.", **facts)
    if dead.woken_by(channel):
        return say("Channel {channel} is silent here, and wakes on:", **facts)
    return say("Channel {channel} is silent here and on every sample.", **facts)
