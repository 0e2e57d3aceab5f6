"""Draw a layer's channels beside those with random weights, and two that are alike, large."""

from functools import partial

import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.untrained import trained_and_untrained
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.picks import pick_channel, picked_channel
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_GRID_HEIGHT = 300  # pixels


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw both grids, and the channel that was picked beside the untrained one most like it."""
    pair = trained_and_untrained(scene, options)
    # Random weights make values of another size, so each side has a scale of its own.
    ours, theirs = (
        make_grid(maps, scale="symmetric", colormap=diverging(), aspect=1.2)
        for maps in (pair.trained, pair.untrained)
    )
    channel = picked_channel(key, len(pair.alike), pair.most_alike)
    partner = int(pair.partners[channel])
    left, right = st.columns(2)
    with left:
        st.markdown("**" + say("Trained") + "**")
        said = say("Trained channels of {layer}. A click compares one.", layer=pair.layer.name)
        mosaic(ours, said, partial(pick_channel, key), key=f"{key} trained", height=_GRID_HEIGHT)
        alt = say("The map of channel {channel}", channel=channel)
        st.image(ours.channel_png(channel, 4), width="stretch", alt=alt)
        st.caption(plain(say("Channel {channel}, trained", channel=channel)))
    with right:
        st.markdown("**" + say("Random weights") + "**")
        said = say("Channels of {layer} with random weights.", layer=pair.layer.name)
        mosaic(theirs, said, _nothing, key=f"{key} untrained", height=_GRID_HEIGHT)
        alt = say("The untrained map of channel {channel}", channel=partner)
        st.image(theirs.channel_png(partner, 4), width="stretch", alt=alt)
        st.caption(
            plain(
                say(
                    "Channel {channel}, untrained, the most alike: correlation ±{correlation:.2f}",
                    channel=partner,
                    correlation=float(pair.alike[channel]),
                )
            )
        )


def _nothing(_channel: int, _cell: tuple[int, int] | None) -> None:
    """Pick nothing: a click here leads nowhere."""
