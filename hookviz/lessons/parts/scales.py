"""Compare the same channels under several colour scales, and find the weakest of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hookviz.capturing.engine import capture
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import Activation, LayerInfo
from hookviz.wording import number

SCALES = ("layer", "channel", "symmetric")
"""Those of `hookviz.drawing.scales` that are compared."""

PICKED = "picked"
"""Among the options the channel that a learner picked; a lesson's file has none."""


@dataclass(frozen=True, eq=False, slots=True)
class WeakestChannel:
    """The channel of a layer with the smallest values, beside the layer's largest.

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
    """Find the channel with the smallest largest |x| among those that vary.

    Raises:
        HookVizError: no channel of the layer varies.
    """
    layer = layer_of(scene, options["layer"])
    maps = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    rows = maps.values.numpy().reshape(len(maps.values), -1)
    sizes = np.abs(rows).max(1)
    varies = rows.max(1) > rows.min(1)
    if not varies.any():
        raise HookVizError(
            say("Every map of {layer} has one value alone on this image.", layer=layer.name)
        )
    channel = int(np.where(varies, sizes, np.inf).argmin())
    return WeakestChannel(layer, maps, channel, float(sizes[channel]), float(sizes.max()))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    weakest = weakest_channel(scene, options)
    values = weakest.maps.values.numpy()
    channel = min(int(options.get(PICKED, weakest.channel)), len(values) - 1)
    largest = float(np.abs(values[channel]).max())
    return {
        "layer": weakest.layer.name,
        "channels": len(weakest.maps.values),
        "weakest": weakest.channel,
        "channel": channel,
        "largest": number(largest),
        "layer_largest": number(weakest.of_layer),
        "times": weakest.of_layer / largest if largest else float("inf"),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    weakest = weakest_channel(scene, options)
    return {"layer": weakest.layer.name, "channel": str(weakest.channel), "scale": "channel"}


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
