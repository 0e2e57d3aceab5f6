"""Draw a layer's channels as a grid, and the picked one below it: large, and on the photograph."""

from functools import partial

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.kernels import TITLES
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import maps_of
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.channels import (
    is_hunt,
    kernel_in_colour,
    matches,
    picked_first,
    wanted_of,
)
from hookviz.types import LayerInfo
from hookviz.ui.components.map import show_map
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.hunt import show_hunt
from hookviz.ui.lessons.maps import grid_of, show_on_photograph
from hookviz.ui.lessons.picks import pick, picked_cell, picked_channel, remember_link
from hookviz.ui.state import Cell

_HEIGHT = 300  # pixels of the grid
_MAGNIFIED = 40  # pixels of the picture for each weight of a kernel


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the grid; below it what is sought, the picked channel, and its place on the image."""
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, layer.name)
    grid = grid_of(maps, layer.name)
    wanted = wanted_of(scene, options, maps)
    start = picked_first(maps, options["channel"], wanted)
    if wanted is not None and is_hunt(options):
        show_hunt(scene, layer, grid, maps, wanted, kind=say(TITLES[options["seek"]]), key=key)
        return
    channel = picked_channel(key, len(maps), start)
    cell = picked_cell(key, maps[channel])
    remember_link(key, {"layer": layer.name, "channel": str(channel)})

    def take(number: int, at: Cell | None) -> None:
        pick(key, "channel", number)
        if at is not None:
            pick(key, "cell", at)

    mosaic(
        grid,
        say("All channels of layer {layer}.", layer=layer.name),
        take,
        key=f"{key}-grid",
        height=_HEIGHT,
        chosen=channel,
    )
    first, second, third = st.columns(3, gap="small", wrap=False)
    take_cell = partial(pick, key, "cell")
    with first if wanted is None else second:
        st.caption(say("Channel {channel}", channel=channel))
        show_map(grid, channel, maps[channel], cell, take_cell, key=f"{key}-map")
    with second if wanted is None else third:
        st.caption(say("On the image"))
        show_on_photograph(scene, grid, channel)
    if wanted is None:
        with third:
            _show_kernel(scene, layer, channel)
    else:
        with first:
            st.caption(say("Sought: {kind}", kind=say(TITLES[options["seek"]])))
            pictured = grid_of(wanted[None])
            show_map(pictured, 0, wanted, cell, take_cell, key=f"{key}-sought")
    if wanted is not None:
        _show_match(matches(maps, wanted), channel)


def _show_kernel(scene: LessonScene, layer: LayerInfo, channel: int) -> None:
    """Show the kernel in its colours, where it looks at colours."""
    kernel = kernel_in_colour(scene, layer, channel)
    if kernel is None:
        return
    st.caption(say("Its kernel; grey is zero"))
    st.image(
        kernel.repeat(_MAGNIFIED, 0).repeat(_MAGNIFIED, 1),
        width="stretch",
        alt=say("The kernel of channel {channel} in its colours.", channel=channel),
    )


def _show_match(likeness: tuple[float, ...], channel: int) -> None:
    """Say how alike the picked channel is to what is sought, and whether another is more so."""
    better = sum(match > likeness[channel] for match in likeness)
    words = say(
        "Alike to what is sought: {similarity:.2f} of at most one.", similarity=likeness[channel]
    )
    others = (
        say("Other channels that come closer: {count}.", count=better)
        if better
        else say("No other channel comes closer.")
    )
    st.html(f'<p class="hv-match {"" if better else "found"}" role="status">{words} {others}</p>')
