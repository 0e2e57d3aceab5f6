"""Compare a layer's channels with those of the same network with random weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.language.saying import mark
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.models.untrained import untrained
from hookviz.types import Activation, LayerInfo


@dataclass(frozen=True, eq=False, slots=True)
class TrainedAndUntrained:
    """What a layer puts out, trained and with random weights, its channels matched.

    Attributes:
        layer: it.
        trained, untrained: its maps, ``(C, H, W)`` each.
        partners: for each trained channel the untrained one whose map is most like it, int64 (C,).
        alike: |Pearson's correlation| of the two over the cells, float64 ``(C,)``; 0 where the
            trained map has one value everywhere.
    """

    layer: LayerInfo
    trained: Activation
    untrained: Activation
    partners: NDArray[np.int64] = field(repr=False)
    alike: NDArray[np.float64] = field(repr=False)

    @property
    def most_alike(self) -> int:
        """The trained channel that has the most similar untrained one."""
        return int(self.alike.argmax())


def trained_and_untrained(scene: LessonScene, options: Options) -> TrainedAndUntrained:
    """Capture the layer's maps with the model's weights and with random ones, and match them.

    Raises:
        ModelError: the weights are random already, or can't be drawn anew.
    """
    layer = layer_of(scene, options["layer"])
    nbytes = 8 * int(np.prod(layer.output_shape))
    return scene.cached(("untrained", layer.name), lambda: _compute(scene, layer), nbytes)


def _compute(scene: LessonScene, layer: LayerInfo) -> TrainedAndUntrained:
    ours = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    blank = untrained(scene.model)
    theirs = capture(blank, scene.model_input, layer.name, logits=False)[layer.name]
    alike = np.abs(_standard(ours).T @ _standard(theirs))
    return TrainedAndUntrained(layer, ours, theirs, alike.argmax(1).astype(np.int64), alike.max(1))


def _standard(maps: Activation) -> NDArray[np.float64]:
    """Return a column for each channel, about its mean and of length 1; zeros where it is flat."""
    columns = maps.values.numpy().reshape(len(maps.values), -1).T.astype(np.float64)
    columns = columns - columns.mean(0)
    lengths = np.sqrt(np.square(columns).sum(0))
    sizes = np.abs(maps.values.numpy()).reshape(len(maps.values), -1).max(1)
    varies = lengths > 1e-6 * sizes * np.sqrt(len(columns))  # more than rounding
    standard: NDArray[np.float64] = np.where(varies, columns / np.where(varies, lengths, 1), 0)
    return standard


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    pair = trained_and_untrained(scene, options)
    channel = pair.most_alike
    return {
        "layer": pair.layer.name,
        "channels": len(pair.alike),
        "alike": float(pair.alike.mean()),
        "channel": channel,
        "partner": int(pair.partners[channel]),
        "most_alike": float(pair.alike[channel]),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, options["layer"]).name, "weights": "random"}


PART = Part(
    name="untrained",
    sentence=mark(
        "The channels of a layer beside those of the same network with random weights; a click on "
        "one shows the untrained channel that is most like it."
    ),
    options=(Option("layer", "first", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)
