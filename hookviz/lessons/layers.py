"""Find the layer that a lesson means, the ReLU behind it, and how far its cells see.

A lesson names a layer, or its place among the conv layers, so that it works with any model.
"""

import math
from collections.abc import Sequence

from hookviz.capturing.engine import capture
from hookviz.capturing.layer_trace import steps_after
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


def convs_of(scene: LessonScene) -> Sequence[LayerInfo]:
    """Return the conv layers in order of execution, as places among them are counted."""
    return _larger_than_a_cell(scene.trace.convs)


def _larger_than_a_cell(convs: Sequence[LayerInfo]) -> Sequence[LayerInfo]:
    """Return the layers whose maps have more than one cell; all where none has."""
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
