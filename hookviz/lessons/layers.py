"""Which layer a lesson means: by its name, or by its place, so that it works with any model."""

import math
from collections.abc import Sequence

from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.language.saying import say
from hookviz.lessons.part import Scene
from hookviz.types import LayerInfo

PLACES = ("first", "second", "early", "middle", "late", "last")
"""What a lesson can say instead of a conv layer's name: its place in order of execution."""

_SHARES = {"early": 0.25, "middle": 0.5, "late": 0.75}


def layer_of(scene: Scene, value: str) -> LayerInfo:
    """The conv layer at one of `PLACES`, or whatever layer has that name.

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
    convs = _with_places(scene.trace.convs)
    if not convs:
        raise HookVizError(
            say("{model} has no conv layer, which this part needs.", model=scene.model.title)
        )
    last = len(convs) - 1
    index = {"first": 0, "second": min(1, last), "last": last}.get(value)
    return convs[round(_SHARES[value] * last) if index is None else index]


def _with_places(convs: Sequence[LayerInfo]) -> Sequence[LayerInfo]:
    """Those whose maps have more than one cell; all where none has."""
    return [conv for conv in convs if math.prod(conv.output_shape[1:]) > 1] or convs
