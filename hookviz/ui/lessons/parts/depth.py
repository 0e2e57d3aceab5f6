"""Draw the slider through the layers, and what else excites the channel that is picked."""

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st

from hookviz.capturing import engine
from hookviz.drawing.pictures import Resampling, encode_jpeg, enlarged, resize
from hookviz.errors import HookVizError
from hookviz.explorer.excites import patches_of
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.maps import Map, maps_of, strongest_first
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.depth import AT, CHANNEL, STRONGEST, Level, levels, start_of
from hookviz.lessons.pictures import picture_of
from hookviz.markup import data_url
from hookviz.types import Model, Pixels
from hookviz.ui.components.depth_scrub import ScrubLevel, depth_scrub
from hookviz.ui.explorer.atlas_choice import shown_atlas
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import pick, picked, remember_link, remember_shown
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import Cell, plain
from hookviz.wording import times

_PHOTOGRAPH = 336  # pixels of what the network gets
_SIDE = 64  # pixels of a map in the strip of a layer


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw all layers, and below them what excites the picked channel."""
    found = levels(scene, options)
    shown = _scrub_levels(scene, found)
    first = start_of(scene, options, found)
    names = [level.layer for level in shown]
    name = picked(key, "layer", names[first])
    at = names.index(name) if name in names else first
    level = shown[at]
    channel = picked(key, "channel", level.channels[0])
    tile = level.channels.index(channel) if channel in level.channels else 0
    channel = level.channels[tile]
    row, column = level.best[tile]
    row, column = picked(key, "cell", (row, column))
    cell = min(row, level.rows - 1), min(column, level.columns - 1)

    def take(at: int, tile: int, cell: Cell) -> None:
        pick(key, "layer", names[at])
        pick(key, "channel", shown[at].channels[tile])
        pick(key, "cell", cell)

    start = {AT: names[first], CHANNEL: str(shown[first].channels[0])}
    remember_shown(key, {AT: names[at], CHANNEL: str(channel)}, start)
    remember_link(
        key,
        {
            "layer": level.layer,
            "channel": str(channel),
            "cell": ",".join(map(str, (*cell, level.rows, level.columns))),
        },
    )
    depth_scrub(
        shown,
        data_url(encode_jpeg(enlarged(picture_of(scene), _PHOTOGRAPH), quality=88), "jpeg"),
        (at, tile, cell),
        take,
        key=f"{key}-scrub",
    )
    _show_excitations(scene.model, level.layer, channel)


def _scrub_levels(scene: LessonScene, found: Sequence[Level]) -> tuple[ScrubLevel, ...]:
    """Return the layers as the browser draws them, computed once for an image and a theme."""
    names = tuple(level.layer.name for level in found)
    shown: tuple[ScrubLevel, ...] = scene.cached(
        ("depth", names, current(), st.context.theme.type),
        lambda: _compute_levels(scene, found),
        lambda each: sum(len(level.strip) for level in each),
    )
    return shown


def _compute_levels(scene: LessonScene, found: Sequence[Level]) -> tuple[ScrubLevel, ...]:
    names = [level.layer.name for level in found]
    engine.capture(scene.model, scene.model_input, names, cache=scene.cache)  # in one pass
    return tuple(_scrub_level(scene, level) for level in found)


def _scrub_level(scene: LessonScene, level: Level) -> ScrubLevel:
    maps = maps_of(scene, level.layer.name)
    channels = strongest_first(maps, STRONGEST)
    rows, columns = maps.shape[1:]
    return ScrubLevel(
        layer=level.layer.name,
        sees=level.sees,
        size=say(
            "{channels} channels of {size} cells", channels=len(maps), size=times(maps.shape[1:])
        ),
        channels=channels,
        rows=rows,
        columns=columns,
        best=[list(divmod(int(maps[channel].argmax()), columns)) for channel in channels],
        edges=_edges(scene, level),
        strip=data_url(encode_jpeg(_strip(maps[channels]), quality=88), "jpeg"),
    )


def _strip(maps: Map) -> Pixels:
    """Draw maps ``(N, H, W)`` side by side, and below them how high they are, dark to light."""
    grid = grid_of(maps)
    tops, bottoms = [], []
    for number, values in enumerate(maps):
        tops.append(_tile(grid.channel_pixels(number)))
        above = np.clip(np.nan_to_num(values), 0, None)
        levels = (255 * above / (above.max() or 1)).astype(np.uint8)
        bottoms.append(resize(levels[..., None].repeat(3, 2), (_SIDE, _SIDE), Resampling.BILINEAR))
    return np.vstack([np.hstack(tops), np.hstack(bottoms)])


def _tile(picture: Pixels) -> Pixels:
    larger = max(picture.shape[:2]) > _SIDE
    return resize(picture, (_SIDE, _SIDE), Resampling.BOX if larger else Resampling.NEAREST)


def _edges(scene: LessonScene, level: Level) -> list[list[float]]:
    """Return what rows and columns of cells see, as shares of the input; nothing where unknown."""
    if level.field is None:
        return []
    height, width = scene.model_input.tensor.shape[-2:]
    top, left, bottom, right = level.field.boxes
    return [
        (top.min(1) / height).tolist(),
        (bottom.max(1) / height).tolist(),
        (left.min(0) / width).tolist(),
        (right.max(0) / width).tolist(),
    ]


def _show_excitations(model: Model, name: str, channel: int) -> None:
    """Show what excites the channel most among the images of the model's atlas, if it has one."""
    atlas = shown_atlas(model)
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
