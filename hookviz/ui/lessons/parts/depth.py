"""Draw layers of different depth: strongest channels, what a cell sees, what else excites it."""

from functools import partial
from html import escape

import numpy as np
import streamlit as st

from hookviz.errors import HookVizError
from hookviz.explorer.excites import patches_of
from hookviz.language.saying import mark, say
from hookviz.lessons.maps import maps_of, strongest_first
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.depth import Level, levels
from hookviz.lessons.pictures import photograph
from hookviz.types import Model
from hookviz.ui.components.map import show_map
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.explorer.atlas_choice import shown_atlas
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import choose, pick, picked, picked_cell, remember_link
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import Cell, plain

_STRONGEST = 12  # channels that are shown of a layer
_HEIGHT = 190  # pixels of their grid
_WIDTHS = (2, 3)  # of the map, and of the photograph, which most often is wider than high
_TITLES = {
    "first": mark("First layer"),
    "second": mark("Second layer"),
    "early": mark("Early layer"),
    "middle": mark("Middle layer"),
    "late": mark("Late layer"),
    "last": mark("Last layer"),
}


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the chosen one of the layers; below its strongest channels the picked one."""
    known = {level.place: level for level in levels(scene, options)}
    place = choose(
        st.segmented_control,
        say("Layer"),
        list(known),
        key,
        "place",
        first=next(iter(known)),
        format_func=lambda name: say(_TITLES[name]) if name in _TITLES else name,
        required=True,
        label_visibility="collapsed",
    )
    level = known[place]
    of_layer = f"{key}-{level.place}"
    maps = maps_of(scene, level.layer.name)
    strongest = strongest_first(maps, _STRONGEST)
    channel = picked(of_layer, "channel", strongest[0])
    channel = channel if channel in strongest else strongest[0]
    rows, columns = maps.shape[1:]
    cell = picked_cell(of_layer, maps[channel])
    remember_link(
        key,
        {
            "layer": level.layer.name,
            "channel": str(channel),
            "cell": ",".join(map(str, (*cell, rows, columns))),
        },
    )
    grid = grid_of(maps, level.layer.name, top=_STRONGEST)

    def take(number: int, _at: Cell | None) -> None:
        pick(of_layer, "channel", number)
        at = divmod(int(np.argmax(maps[number])), columns)
        pick(of_layer, "cell", at)

    mosaic(
        grid,
        say("The strongest channels of layer {layer}.", layer=level.layer.name),
        take,
        key=f"{of_layer}-grid",
        height=_HEIGHT,
        chosen=channel,
    )
    left, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.caption(say("Channel {channel}: pick a cell", channel=channel))
        pick_cell = partial(pick, of_layer, "cell")
        show_map(grid, channel, maps[channel], cell, pick_cell, key=f"{of_layer}-map")
    with right:
        _show_field(scene, level, cell)
    _show_excitations(scene.model, level, channel)


def _show_field(scene: LessonScene, level: Level, cell: Cell) -> None:
    """Show the image with what the cell sees framed."""
    st.caption(say("What it sees: {size}", size=level.sees))
    box = None if level.field is None else level.field.box(*cell)
    st.image(
        photograph(scene, box=box),
        width="stretch",
        output_format="JPEG",
        alt=say(
            "The image; framed is what the cell in row {row}, column {column} sees.",
            row=cell[0],
            column=cell[1],
        ),
    )


def _show_excitations(model: Model, level: Level, channel: int) -> None:
    """Show what excites the channel most among the images of the model's atlas, if it has one."""
    atlas, name = shown_atlas(model), level.layer.name
    if atlas is None or name not in atlas.layers:
        return
    try:
        strongest = patches_of(session_cache(), atlas, name, channel)
    except HookVizError as error:
        st.caption(plain(str(error)))
        return
    if strongest:
        st.caption(say("The parts of images that excite channel {channel} most", channel=channel))
        pictures = "".join(
            f'<img src="{patch.picture}" alt="{escape(patch.title)}" title="{escape(patch.title)}">'
            for patch in strongest
            if patch.picture
        )
        st.html(f'<div class="hv-lesson-patches">{pictures}</div>')
