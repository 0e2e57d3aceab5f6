"""Compare layers of different depth: their strongest channels, and how far a cell sees."""

from collections.abc import Mapping
from dataclasses import dataclass

from hookviz.explaining.receptive_field import ReceptiveField
from hookviz.language.saying import say
from hookviz.lessons.layers import layer_of, receptive_field_of
from hookviz.lessons.maps import maps_of, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import LayerInfo
from hookviz.wording import times

MOST = 3
"""Layers that stand beside each other, at most."""


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
    for place in places(options["layers"]):
        layer = layer_of(scene, place)
        by_layer.setdefault(layer.name, Level(place, layer, receptive_field_of(scene, layer.name)))
    return tuple(by_layer.values())


def places(text: str) -> list[str]:
    """Split a list of layers with commas."""
    return [name.strip() for name in text.split(",")]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    _, _, height, width = scene.model_input.tensor.shape
    facts: dict[str, Fact] = {"height": height, "width": width}
    for place in places(options["layers"]):
        layer = layer_of(scene, place)
        level = Level(place, layer, receptive_field_of(scene, layer.name))
        name = place.replace(".", "_")
        facts |= {
            f"{name}_layer": layer.name,
            f"{name}_number": layer.index + 1,
            f"{name}_channels": layer.output_shape[0],
            f"{name}_rows": layer.output_shape[1],
            f"{name}_columns": layer.output_shape[2],
            f"{name}_sees": level.sees,
            f"{name}_share": _share(level, height, width),
        }
    return facts


def _share(level: Level, height: int, width: int) -> float:
    """Return how much of the input the cell in the middle of the map sees, 0…1."""
    if level.field is None:
        return 0.0
    rows, columns = level.field.cells
    top, left, bottom, right = level.field.box(rows // 2, columns // 2)
    return (bottom - top) * (right - left) / (height * width)


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    layer = layer_of(scene, places(options["layers"])[-1])
    strongest = strongest_first(maps_of(scene, layer.name), 1)[0]
    return {"layer": layer.name, "channel": str(strongest)}


def _check_layers(value: str) -> str:
    listed = places(value)
    fits = 2 <= len(listed) <= MOST and all(listed)
    return "" if fits else say("Two or three layers belong here, with commas between them.")


PART = Part(
    name="depth",
    sentence="The strongest channels of an early, a middle and a late layer; a click on a cell "
    "frames on the photograph what it sees, and shows what else excites its channel.",
    options=(Option("layers", "early, middle, late", "Two or three layers.", _check_layers),),
    facts=_facts,
    link=_link,
)
