"""The channels behind a ReLU, how many are dead as images are added, and what wakes one."""

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
from hookviz.ui.lessons.picked_channel import keep, picked
from hookviz.ui.state import plain

_GRID_HEIGHT = 300  # pixels
_MOST = 108  # channels that are shown


def show(scene: LessonScene, options: Options, key: str) -> None:
    """The grid, the channel that was picked, and the chart."""
    dead = dead_channels(scene, options)
    silent = np.flatnonzero(dead.silent[0])
    channel = picked(key, dead.silent.shape[1], int(silent[0]) if len(silent) else 0)
    grid = make_grid(dead.maps, sort="zeros", top=_MOST, aspect=3)
    said = say(
        "Channels at {address}, most zeros first. A click tells what wakes one.",
        address=dead.address,
    )
    mosaic(grid, said, partial(keep, key), key=f"{key} grid", height=_GRID_HEIGHT)
    st.caption(plain(said))
    st.markdown(plain(_about(dead, channel)))
    panel = ChartPanel(
        say("Channels that stay dead"),
        tuple(str(place + 1) for place in range(len(dead.titles))),
        {say("channels dead on all of them"): dead.so_far.astype(np.float64)},
        unit=say("channels dead on all of the first images"),
        places=say("images"),
    )
    chart(panel, f"{key} chart", None)
    st.caption(plain(say("Along the bottom: how many images were looked at, yours first.")))


def _about(dead: DeadChannels, channel: int) -> str:
    """Where the channel answers, in a sentence."""
    woken = dead.woken_by(channel)
    facts = {"channel": channel, "titles": ", ".join(map(say, woken))}
    if not dead.silent[0, channel]:
        return say("Channel {channel} answers on this image.", **facts)
    if woken:
        return say("Channel {channel} is dead here, and wakes on: {titles}.", **facts)
    return say("Channel {channel} is dead here and on every sample.", **facts)
