"""The same channels under several colour scales, and the weakest of them under each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hookviz.capturing.engine import capture
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import Activation, LayerInfo

SCALES = ("layer", "channel", "symmetric")
"""Those of `hookviz.drawing.scales` that are compared."""


@dataclass(frozen=True, eq=False, slots=True)
class WeakestChannel:
    """The channel of a layer that answers least, and how little that is.

    Attributes:
        layer: whose channel it is.
        maps: of the layer.
        channel: its number, of those that do not have one value everywhere.
        largest: its largest |x|.
        of_layer: the layer's largest |x|.
    """

    layer: LayerInfo
    maps: Activation
    channel: int
    largest: float
    of_layer: float


def weakest_channel(scene: LessonScene, options: Options) -> WeakestChannel:
    """The channel with the smallest largest |x| among those that vary.

    Raises:
        HookVizError: no channel of the layer varies.
    """
    layer = layer_of(scene, options["layer"])
    found = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    rows = found.values.numpy().reshape(len(found.values), -1)
    sizes = np.abs(rows).max(1)
    varies = rows.max(1) > rows.min(1)
    if not varies.any():
        raise HookVizError(
            say("Every map of {layer} has one value alone on this image.", layer=layer.name)
        )
    channel = int(np.where(varies, sizes, np.inf).argmin())
    return WeakestChannel(layer, found, channel, float(sizes[channel]), float(sizes.max()))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = weakest_channel(scene, options)
    return {
        "layer": found.layer.name,
        "channels": len(found.maps.values),
        "channel": found.channel,
        "largest": found.largest,
        "layer_largest": found.of_layer,
        "times": found.of_layer / found.largest,
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    found = weakest_channel(scene, options)
    return {"layer": found.layer.name, "channel": str(found.channel), "scale": "channel"}


PART = Part(
    name="scales",
    sentence=mark(
        "All channels of a layer in colours of the learner's choice, and its weakest channel in "
        "all of them beside each other."
    ),
    options=(Option("layer", "early", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)
