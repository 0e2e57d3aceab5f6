"""Compare layers of different depth: their strongest channels, and the receptive field of a cell.

The browser has all layers, so that maps and receptive fields follow the slider at once. Below it
are patches that excite the picked channel.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape

import numpy as np
import streamlit as st

from hookviz.capturing import engine
from hookviz.drawing.pictures import Resampling, encode_jpeg, enlarged, resize
from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.explorer.excites import patches_of
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.layers import (
    PLACES,
    Map,
    convs_of,
    layer_of,
    maps_of,
    receptive_field_of,
    strongest_first,
)
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.pictures import picture_of
from hookviz.lessons.scores import chance
from hookviz.markup import data_url
from hookviz.types import LayerInfo, Model, Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.explorer.atlases import chosen_atlas
from hookviz.ui.lessons.figures import grid_of
from hookviz.ui.lessons.picks import pick, picked, remember_link, remember_options, within
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import Cell, plain
from hookviz.wording import times

_MOST = 3
"""Names of layers in a lesson's file, at most."""

_ALL = "all"
"""Word of a lesson's file for all conv layers."""

AT, CHANNEL = "at", "channel"
"""Options that the page adds: the chosen layer and channel."""

_STRONGEST = 12
"""Channels of a layer to choose from."""

_MOST_OF_ALL = 26  # layers of a deep network, evenly spaced


@dataclass(frozen=True, slots=True)
class Level:
    """A layer with its receptive field.

    Attributes:
        place: its name in the lesson, such as ``"early"``.
        layer: the layer.
        field: the receptive field; None if it is unknown.
    """

    place: str
    layer: LayerInfo
    field: ReceptiveField | None

    @property
    def sees(self) -> str:
        """The size of a cell's receptive field, in words."""
        if self.field is None:
            return say("an unknown part of the image")
        if self.field.size is None:
            return say("all of the image")
        return say("{size} pixels", size=times(self.field.size))


def levels(scene: LessonScene, options: Options) -> tuple[Level, ...]:
    """Return the lesson's layers, each once, in its order."""
    by_layer: dict[str, Level] = {}
    for place in _every(scene) if options["layers"] == _ALL else _places(options["layers"]):
        layer = layer_of(scene, place)
        by_layer.setdefault(layer.name, Level(place, layer, receptive_field_of(scene, layer.name)))
    return tuple(by_layer.values())


def _every(scene: LessonScene) -> list[str]:
    """Return the conv layers' names; for a deep network evenly spaced ones."""
    names = [conv.name for conv in convs_of(scene)]
    count = min(len(names), _MOST_OF_ALL)
    chosen = np.linspace(0, len(names) - 1, count).round().astype(int)
    return [names[at] for at in chosen.tolist()]


def start_of(scene: LessonScene, options: Options, listed: tuple[Level, ...]) -> int:
    """Return the position of the first level, by the first fitting word of the lesson."""
    names = [level.layer.name for level in listed]
    for place in _places(options["start"]):
        try:
            layer = layer_of(scene, place).name
        except UnknownLayerError:
            continue  # a name of another network
        if layer in names:
            return names.index(layer)
        if place in PLACES:  # the nearest to a layer that was left out
            index = layer_of(scene, place).index
            return min(range(len(listed)), key=lambda at: abs(listed[at].layer.index - index))
    return 0


def _places(text: str) -> list[str]:
    """Split a list of layers with commas."""
    return [name.strip() for name in text.split(",")]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    _, _, height, width = scene.model_input.tensor.shape
    listed = levels(scene, options)
    at = start_of(scene, {**options, "start": options.get(AT) or options["start"]}, listed)
    facts: dict[str, Fact] = {"height": height, "width": width, "layers": len(listed)}
    facts |= _of_level(scene, listed[at], "at", height, width) | {"at_number": at + 1}
    facts |= {
        "channel": _channel_of(scene, listed[at].layer.name, options.get(CHANNEL, "")),
        "at_part": chance(_share(listed[at], height, width)),
    }
    for place in [] if options["layers"] == _ALL else _places(options["layers"]):
        layer = layer_of(scene, place)
        level = Level(place, layer, receptive_field_of(scene, layer.name))
        facts |= _of_level(scene, level, place.replace(".", "_"), height, width)
    return facts


def _channel_of(scene: LessonScene, layer: str, picked: str) -> int:
    """Return the picked channel, or the strongest if it can't be picked."""
    offered = strongest_first(maps_of(scene, layer), _STRONGEST)
    return int(picked) if picked.isdecimal() and int(picked) in offered else offered[0]


def _of_level(
    scene: LessonScene, level: Level, name: str, height: int, width: int
) -> dict[str, Fact]:
    layer = level.layer
    return {
        f"{name}_layer": layer.name,
        f"{name}_number": layer.index + 1,
        f"{name}_channels": layer.output_shape[0],
        f"{name}_rows": layer.output_shape[1],
        f"{name}_columns": layer.output_shape[2],
        f"{name}_sees": level.sees,
        f"{name}_share": _share(level, height, width),
        f"{name}_strongest": strongest_first(maps_of(scene, layer.name), 1)[0],
    }


def _share(level: Level, height: int, width: int) -> float:
    """Return the share of the input in the receptive field of the middle cell, 0…1."""
    if level.field is None:
        return 0.0
    rows, columns = level.field.cells
    top, left, bottom, right = level.field.box(rows // 2, columns // 2)
    return (bottom - top) * (right - left) / (height * width)


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    listed = levels(scene, options)
    layer = listed[start_of(scene, options, listed)].layer
    strongest = strongest_first(maps_of(scene, layer.name), 1)[0]
    return {"layer": layer.name, "channel": str(strongest)}


def _check_layers(value: str) -> str:
    if value == _ALL:
        return ""
    listed = _places(value)
    fits = 2 <= len(listed) <= _MOST and all(listed)
    return "" if fits else say("Two or three layers belong here, with commas between them, or all.")


PART = Part(
    name="depth",
    sentence="A slider through the layers: the strongest channels of each, where one answers on "
    "the photograph, what a cell sees there, and what else excites the channel.",
    options=(
        Option("layers", "early, middle, late", "Two or three layers, or all.", _check_layers),
        Option(
            "start",
            "",
            "Where the slider stands at first: the first of these layers that is there.",
        ),
    ),
    facts=_facts,
    link=_link,
    fits=lambda scene: len(convs_of(scene)) > 1,
)


@dataclass(frozen=True, eq=False, slots=True)
class ScrubLevel:
    """One layer for the browser.

    Attributes:
        layer: the layer's name.
        sees: size of the receptive field, in words.
        size: numbers of channels and cells, in words.
        channels: the strongest, strongest first.
        rows, columns: cells of a map.
        best: the strongest cell of each of these channels.
        edges: top and bottom of each row's receptive fields, left and right of each column's, as
            shares of the input; empty if unknown.
        strip: a JPEG as a URL: the maps side by side in colours, and below as brightness.
    """

    layer: str
    sees: str
    size: str
    channels: list[int]
    rows: int
    columns: int
    best: list[list[int]]
    edges: list[list[float]]
    strip: str = field(repr=False)


def _depth_scrub(
    levels: Sequence[ScrubLevel],
    photograph: str,
    chosen: tuple[int, int, Cell],
    on_pick: Callable[[int, int, Cell], None],
    *,
    key: str,
) -> None:
    """Show the layers with a slider.

    Args:
        levels: in order of execution.
        photograph: the network's input, as a URL.
        chosen: positions of the level and of the channel in it, and a cell.
        on_pick: gets the same when others are picked.
        key: of the component in Streamlit's state.
    """

    def take(sent: object) -> None:
        match sent:
            case [int(at), int(tile), int(row), int(column)] if 0 <= at < len(levels):
                level = levels[at]
                if 0 <= tile < len(level.channels):
                    on_pick(at, tile, within((row, column), (level.rows, level.columns)))

    at, tile, cell = chosen
    data = {
        "levels": [asdict(level) for level in levels],
        "photograph": photograph,
        "chosen": [at, tile, *cell],
        "words": {
            "label": say("The strongest channels, layer by layer"),
            "slider": say("Depth"),
            "layer": say("Layer {number} of {count}: {layer}"),
            "channel": say("Channel {channel}"),
            "first": say("first layer"),
            "last": say("last layer"),
            "sees": say("A cell sees {size}"),
            "alt": say(
                "Bright on the image is where channel {channel} answers; framed is what "
                "the cell in row {row}, column {column} sees."
            ),
        },
    }
    mount("depth_scrub", key, data, picked=take)


_INPUT_PX = 336
_MAP_PX = 64  # in the strip of a layer


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw all layers, and below them the patches that excite the picked channel."""
    listed = levels(scene, options)
    scrub = _scrub_levels(scene, listed)
    first = start_of(scene, options, listed)
    names = [level.layer for level in scrub]
    name = picked(key, "layer", names[first])
    at = names.index(name) if name in names else first
    level = scrub[at]
    channel = picked(key, "channel", level.channels[0])
    tile = level.channels.index(channel) if channel in level.channels else 0
    channel = level.channels[tile]
    row, column = level.best[tile]
    cell = within(picked(key, "cell", (row, column)), (level.rows, level.columns))

    def take(at: int, tile: int, cell: Cell) -> None:
        pick(key, "layer", names[at])
        pick(key, "channel", scrub[at].channels[tile])
        pick(key, "cell", cell)

    start = {AT: names[first], CHANNEL: str(scrub[first].channels[0])}
    remember_options(key, {AT: names[at], CHANNEL: str(channel)}, start)
    remember_link(
        key,
        {
            "layer": level.layer,
            "channel": str(channel),
            "cell": ",".join(map(str, (*cell, level.rows, level.columns))),
        },
    )
    _depth_scrub(
        scrub,
        data_url(encode_jpeg(enlarged(picture_of(scene), _INPUT_PX), quality=88), "jpeg"),
        (at, tile, cell),
        take,
        key=f"{key}-scrub",
    )
    _show_excitations(scene.model, level.layer, channel)


def _scrub_levels(scene: LessonScene, listed: Sequence[Level]) -> tuple[ScrubLevel, ...]:
    """Return the layers for the browser, computed once for an image and a theme."""
    names = tuple(level.layer.name for level in listed)

    def compute() -> tuple[ScrubLevel, ...]:
        engine.capture(scene.model, scene.model_input, names, cache=scene.cache)  # in one pass
        return tuple(_scrub_level(scene, level) for level in listed)

    return scene.cached(
        ("depth", names, current(), st.context.theme.type),
        compute,
        lambda each: sum(len(level.strip) for level in each),
    )


def _scrub_level(scene: LessonScene, level: Level) -> ScrubLevel:
    maps = maps_of(scene, level.layer.name)
    channels = strongest_first(maps, _STRONGEST)
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
    """Draw maps ``(N, H, W)`` side by side in colours, and below as brightness."""
    grid = grid_of(maps)
    tops, bottoms = [], []
    for number, values in enumerate(maps):
        tops.append(_tile(grid.channel_pixels(number)))
        above = np.clip(np.nan_to_num(values), 0, None)
        levels = (255 * above / (above.max() or 1)).astype(np.uint8)
        grey = levels[..., None].repeat(3, 2)
        bottoms.append(resize(grey, (_MAP_PX, _MAP_PX), Resampling.BILINEAR))
    return np.vstack([np.hstack(tops), np.hstack(bottoms)])


def _tile(picture: Pixels) -> Pixels:
    is_larger = max(picture.shape[:2]) > _MAP_PX
    return resize(picture, (_MAP_PX, _MAP_PX), Resampling.BOX if is_larger else Resampling.NEAREST)


def _edges(scene: LessonScene, level: Level) -> list[list[float]]:
    """Return the edges of receptive fields, as shares of the input; empty if unknown."""
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
    """Show the patches of the model's atlas that excite the channel most, if there is one."""
    atlas = chosen_atlas(model)
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
