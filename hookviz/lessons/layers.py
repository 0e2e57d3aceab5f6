"""Find the layer that a lesson means, and its maps, channels and receptive field.

A lesson names a layer, or its place among the conv layers, so that it works with any model. A map
is ``(H, W)``, float32; a layer's maps are ``(C, H, W)``.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.capturing.engine import capture
from hookviz.capturing.layer_trace import steps_after
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.statistics import channel_stats, order
from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField, receptive_fields
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene
from hookviz.types import Activation, ActivationKey, LayerInfo, Model, ModelInput

PLACES = ("first", "second", "early", "middle", "late", "last")
"""What a lesson can say instead of a conv layer's name: its place in order of execution."""

_SHARES = {"early": 0.25, "middle": 0.5, "late": 0.75}


def layer_of(scene: LessonScene, value: str) -> LayerInfo:
    """Return the conv layer at one of `PLACES`, or whatever layer has that name.

    Of few layers several places are the same one. Layers whose maps have one cell, as in squeeze
    and excitation, count only where there are no others.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        HookVizError: a place was asked for, and the model has no conv layers.
    """
    if value not in PLACES:
        layers = {layer.name: layer for layer in (*scene.trace.layers, *scene.trace.maps)}
        if value not in layers:
            raise UnknownLayerError("layer", value, (*layers, *PLACES))
        return layers[value]
    convs = convs_of(scene)
    if not convs:
        raise HookVizError(
            say("{model} has no conv layer, which this part needs.", model=scene.model.title)
        )
    last = len(convs) - 1
    index = {"first": 0, "second": min(1, last), "last": last}.get(value)
    return convs[round(_SHARES[value] * last) if index is None else index]


def first_layer_of(scene: LessonScene, values: Sequence[str]) -> LayerInfo:
    """Return the first layer that exists; see `layer_of`.

    Raises:
        UnknownLayerError: the model has none of them.
    """
    for value in values[:-1]:
        try:
            return layer_of(scene, value)
        except UnknownLayerError:
            continue  # a name of another network
    return layer_of(scene, values[-1])


def convs_of(scene: LessonScene) -> Sequence[LayerInfo]:
    """Return the conv layers in order of execution, as places among them are counted."""
    convs = scene.trace.convs
    return [conv for conv in convs if math.prod(conv.output_shape[1:]) > 1] or convs


def activation_of(scene: LessonScene, layer: LayerInfo) -> str:
    """Return the address of the ReLU behind a conv layer; the layer's own where there is none."""
    kinds = {info.name: info.kind for info in scene.trace.listed}
    relus = (
        str(step) for step in steps_after(scene.trace, layer.name) if "ReLU" in kinds[step.layer]
    )
    return next(relus, str(ActivationKey(layer.name)))


def capture_at(model: Model, model_input: ModelInput, address: str) -> Activation:
    """Capture the activation at an address, in a pass that ends there."""
    layer = ActivationKey.read(address).layer
    return capture(model, model_input, layer, logits=False)[address]


def receptive_field_of(scene: LessonScene, address: str) -> ReceptiveField | None:
    """Return how far each cell of a layer sees; None where that is not known."""
    return receptive_fields(scene.model, scene.model_input).get(address)


Map = NDArray[np.float32]

STRONGEST = "strongest"
"""What a lesson writes for the channel with the highest value of all."""


def maps_of(scene: LessonScene, address: ActivationKey | str) -> Map:
    """Return a layer's maps of the lesson's image, ``(C, H, W)``; of a volume its middle slice.

    Raises:
        HookVizError: it puts out no maps.
    """
    layer = ActivationKey(str(address)).layer if isinstance(address, str) else address.layer
    capture = engine.capture(scene.model, scene.model_input, layer, cache=scene.cache)
    maps = middle_maps(capture[str(address)].values)
    if maps.ndim != 3:
        raise HookVizError(
            say("{layer} puts out no maps, which this part needs.", layer=str(address))
        )
    return maps.numpy()


def strongest_first(maps: Map, count: int | None = None) -> list[int]:
    """Return the channels of ``(C, H, W)`` by their highest value, the highest first."""
    channels: list[int] = order(channel_stats(maps), "max", count).tolist()
    return channels


def channel_of(maps: Map, asked: str) -> int:
    """Return the channel of ``(C, H, W)`` that a lesson asks for: a number, or `STRONGEST`.

    A number that a smaller layer has not got stands for its last channel, so that a lesson goes on
    with any model.
    """
    return strongest_first(maps, 1)[0] if asked == STRONGEST else min(int(asked), len(maps) - 1)


def check_channel(value: str) -> str:
    """Return what is wrong with a lesson's channel, in words; empty where it is one."""
    if value == STRONGEST or (value.isascii() and value.isdecimal() and len(value) < 7):
        return ""
    return say("A channel's number works here, or {keyword}.", keyword=STRONGEST)


def correlation(one: Map, other: Map) -> float:
    """Return Pearson's correlation of two maps of one size, cell by cell; 0 where one is flat."""
    a, b = (values.astype(np.float64).ravel() - values.mean() for values in (one, other))
    length = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / length if length > 0 else 0.0


def maps_before_and_after(scene: LessonScene, changed: ModelInput, layer: str) -> tuple[Map, Map]:
    """Return a layer's maps of the lesson's picture and of the changed one, ``(C, H, W)`` each.

    Raises:
        HookVizError: it puts out no maps.
    """
    before = maps_of(scene, layer)
    after = engine.capture(scene.model, changed, layer, logits=False)[layer].values
    return before, middle_maps(after).numpy()


def moved(before: Map, after: Map) -> float:
    """Return how far maps changed, as a share of what they were: |after − before| / |before|."""
    size = float(np.linalg.norm(before))
    return float(np.linalg.norm(after - before)) / size if size else 0.0
