"""Compare layers of different depth: their strongest channels, and how far a cell sees."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hookviz.errors import UnknownLayerError
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.language.saying import say
from hookviz.lessons.chances import chance
from hookviz.lessons.layers import PLACES, convs_of, layer_of, receptive_field_of
from hookviz.lessons.maps import maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import LayerInfo
from hookviz.wording import times

MOST = 3
"""Layers that a lesson names, at most, where it doesn't take all."""

ALL = "all"
"""What a lesson writes for all conv layers."""

AT, CHANNEL = "at", "channel"
"""Among the options the layer that a learner went to and the channel picked; a file has none."""

STRONGEST = 12
"""Channels of a layer among which one can be picked."""

_MOST_OF_ALL = 26  # layers of a deep network, evenly spaced


@dataclass(frozen=True, slots=True)
class Level:
    """A layer that is compared, with its receptive field.

    Attributes:
        place: as the lesson has it, such as ``"early"``.
        layer: the layer.
        field: how far its cells see; None where that is not known.
    """

    place: str
    layer: LayerInfo
    field: ReceptiveField | None

    @property
    def sees(self) -> str:
        """How large a part of the input one of its cells sees, in words."""
        if self.field is None:
            return say("an unknown part of the image")
        if self.field.size is None:
            return say("all of the image")
        return say("{size} pixels", size=times(self.field.size))


def levels(scene: LessonScene, options: Options) -> tuple[Level, ...]:
    """Return the layers that the lesson names, each once, in its order."""
    by_layer: dict[str, Level] = {}
    for place in _every(scene) if options["layers"] == ALL else places(options["layers"]):
        layer = layer_of(scene, place)
        by_layer.setdefault(layer.name, Level(place, layer, receptive_field_of(scene, layer.name)))
    return tuple(by_layer.values())


def _every(scene: LessonScene) -> list[str]:
    """Return the conv layers' names; of a deep network some of them, evenly spaced."""
    names = [conv.name for conv in convs_of(scene)]
    count = min(len(names), _MOST_OF_ALL)
    chosen = np.linspace(0, len(names) - 1, count).round().astype(int)
    return [names[at] for at in chosen.tolist()]


def start_of(scene: LessonScene, options: Options, found: tuple[Level, ...]) -> int:
    """Return which of the levels is shown at first: of those that the lesson names the first."""
    names = [level.layer.name for level in found]
    for place in places(options["start"]):
        try:
            layer = layer_of(scene, place).name
        except UnknownLayerError:
            continue  # a name of another network
        if layer in names:
            return names.index(layer)
        if place in PLACES:  # a layer that was left out: the nearest there is
            index = layer_of(scene, place).index
            return min(range(len(found)), key=lambda at: abs(found[at].layer.index - index))
    return 0


def places(text: str) -> list[str]:
    """Split a list of layers with commas."""
    return [name.strip() for name in text.split(",")]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    _, _, height, width = scene.model_input.tensor.shape
    found = levels(scene, options)
    at = start_of(scene, {**options, "start": options.get(AT) or options["start"]}, found)
    facts: dict[str, Fact] = {"height": height, "width": width, "layers": len(found)}
    facts |= _of_level(scene, found[at], "at", height, width) | {"at_number": at + 1}
    facts |= {
        "channel": _channel_of(scene, found[at].layer.name, options.get(CHANNEL, "")),
        "at_part": chance(_share(found[at], height, width)),
    }
    for place in [] if options["layers"] == ALL else places(options["layers"]):
        layer = layer_of(scene, place)
        level = Level(place, layer, receptive_field_of(scene, layer.name))
        facts |= _of_level(scene, level, place.replace(".", "_"), height, width)
    return facts


def _channel_of(scene: LessonScene, layer: str, picked: str) -> int:
    """Return the channel that is picked; the strongest where it is none of those offered."""
    offered = strongest_first(maps_of(scene, layer), STRONGEST)
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
    """Return how much of the input the cell in the middle of the map sees, 0…1."""
    if level.field is None:
        return 0.0
    rows, columns = level.field.cells
    top, left, bottom, right = level.field.box(rows // 2, columns // 2)
    return (bottom - top) * (right - left) / (height * width)


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    found = levels(scene, options)
    layer = found[start_of(scene, options, found)].layer
    strongest = strongest_first(maps_of(scene, layer.name), 1)[0]
    return {"layer": layer.name, "channel": str(strongest)}


def _check_layers(value: str) -> str:
    if value == ALL:
        return ""
    listed = places(value)
    fits = 2 <= len(listed) <= MOST and all(listed)
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
)
