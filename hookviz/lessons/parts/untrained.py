"""Compare a layer's channels with those of the same network with random weights.

The best of many random channels is much like a trained one by chance alone. What chance gives is
told by random channels that are looked for among the other random ones, with nothing trained.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.language.saying import mark
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.models.derived_models import untrained
from hookviz.types import Activation, LayerInfo

Correlations = NDArray[np.float64]

TRIED = "tried"
"""Among the options how many random channels are looked through; a lesson's file has none."""


@dataclass(frozen=True, eq=False, slots=True)
class TrainedAndUntrained:
    """What a layer puts out, trained and with random weights, its channels matched.

    Attributes:
        layer: it.
        trained, untrained: its maps, ``(C, H, W)`` each.
        correlations: |Pearson's correlation| over the cells of each trained channel with each
            random one, ``(C, C)``; 0 where a map has one value everywhere.
        chance: the same of each random channel with each other random one, ``(C, C - 1)``.
    """

    layer: LayerInfo
    trained: Activation
    untrained: Activation
    correlations: Correlations = field(repr=False)
    chance: Correlations = field(repr=False)

    @property
    def partners(self) -> NDArray[np.int64]:
        """For each trained channel the random one whose map is most like it, ``(C,)``."""
        return self.partners_of(len(self.correlations))

    def partners_of(self, tried: int) -> NDArray[np.int64]:
        """Return the most similar of the first `tried` random channels to each trained one."""
        partners: NDArray[np.int64] = self.correlations[:, :tried].argmax(1).astype(np.int64)
        return partners

    @property
    def alike(self) -> Correlations:
        """How alike each trained channel and its partner are, ``(C,)``."""
        best: Correlations = self.correlations.max(1)
        return best

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
    nbytes = 8 * int(np.prod(layer.output_shape)) + 16 * layer.output_shape[0] ** 2
    return scene.cached(("untrained", layer.name), lambda: _compute(scene, layer), nbytes)


def best_of(correlations: Correlations, tried: int) -> float:
    """Return the mean of the highest of `tried` numbers of a row, over all choices and rows.

    Of n numbers in order, the i-th is the highest of comb(i - 1, tried - 1) of the comb(n, tried)
    choices.

    Args:
        correlations: ``(rows, n)``.
        tried: how many of a row are chosen, 1 … n.
    """
    count = correlations.shape[1]
    choices = math.comb(count, tried)
    weights = [math.comb(below, tried - 1) / choices for below in range(count)]
    return float((np.sort(correlations, 1) @ weights).mean())


def counts_to_try(channels: int) -> Sequence[int]:
    """Return how many random channels can be looked through: powers of two, and all.

    >>> counts_to_try(48)
    (1, 2, 4, 8, 16, 32, 48)
    """
    powers = (2**power for power in range(channels.bit_length()))
    return (*(count for count in powers if count < channels), channels)


def tried_of(options: Options, channels: int) -> int:
    """Return how many random channels the options say are looked through; all without a word."""
    return min(int(options.get(TRIED, channels)), channels)


def _compute(scene: LessonScene, layer: LayerInfo) -> TrainedAndUntrained:
    ours = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    blank = untrained(scene.model)
    theirs = capture(blank, scene.model_input, layer.name, logits=False)[layer.name]
    trained, random = _standard(ours), _standard(theirs)
    among = np.abs(random.T @ random)
    others = among[~np.eye(len(among), dtype=bool)].reshape(len(among), -1)
    return TrainedAndUntrained(layer, ours, theirs, np.abs(trained.T @ random), others)


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
    channel, channels = pair.most_alike, len(pair.correlations)
    tried = tried_of(options, channels)
    others = min(tried, pair.chance.shape[1])
    return {
        "layer": pair.layer.name,
        "channels": channels,
        "tried": tried,
        "alike": best_of(pair.correlations, tried),
        "one": best_of(pair.correlations, 1),
        "others": others,
        "chance": best_of(pair.chance, others) if others else 0.0,
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
        "one shows the untrained channel that is most like it, of as many as are looked through; a "
        "chart shows what chance alone gives for so many."
    ),
    options=(Option("layer", "first", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)
