"""A layer's channels beside those with random weights, and two that are alike, large."""

from functools import partial

import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.language.saying import say
from hookviz.lessons.part import Options, Scene
from hookviz.lessons.parts.untrained import beside
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.picked_channel import keep, picked
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_GRID_HEIGHT = 300  # pixels


def show(scene: Scene, options: Options, key: str) -> None:
    """Both grids, and the channel that was picked beside the untrained one most like it."""
    found = beside(scene, options)
    # Random weights make values of another size, so each side has a scale of its own.
    ours, theirs = (
        make_grid(maps, scale="symmetric", colormap=diverging(), aspect=1.2)
        for maps in (found.trained, found.untrained)
    )
    channel = picked(key, len(found.alike), found.most_alike)
    partner = int(found.partners[channel])
    left, right = st.columns(2)
    with left:
        st.markdown("**" + say("Trained") + "**")
        said = say("Trained channels of {layer}. A click compares one.", layer=found.layer.name)
        mosaic(ours, said, partial(keep, key), key=f"{key} trained", height=_GRID_HEIGHT)
        alt = say("The map of channel {channel}", channel=channel)
        st.image(ours.channel_png(channel, 4), width="stretch", alt=alt)
        st.caption(plain(say("Channel {channel}, trained", channel=channel)))
    with right:
        st.markdown("**" + say("Random weights") + "**")
        said = say("Channels of {layer} with random weights.", layer=found.layer.name)
        mosaic(theirs, said, _nothing, key=f"{key} untrained", height=_GRID_HEIGHT)
        alt = say("The untrained map of channel {channel}", channel=partner)
        st.image(theirs.channel_png(partner, 4), width="stretch", alt=alt)
        st.caption(
            plain(
                say(
                    "Channel {channel}, untrained, the most alike: correlation ±{correlation:.2f}",
                    channel=partner,
                    correlation=float(found.alike[channel]),
                )
            )
        )


def _nothing(_channel: int, _cell: tuple[int, int] | None) -> None:
    """A click here picks nothing."""
