"""Find a channel that correlates with the class but hardly matters, and the one that does."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hookviz.language.saying import mark, say
from hookviz.lessons.chances import chance
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.scores import Floats, own_scores, scores_without_each
from hookviz.lessons.versions import Versions, versions
from hookviz.types import LayerInfo

_FIRST = 8  # the best-correlated one in eight channels counts as going along with the class
_HARDLY = 0.02  # of the probability


@dataclass(frozen=True, eq=False, slots=True)
class ClassChannels:
    """The channel of a layer that merely correlates with the class, and the one it needs.

    Attributes:
        layer: the layer.
        versions: of the image, and what the network computes of them.
        chance: how likely the class is with all channels.
        without: how likely it is without each channel alone, ``(C,)``.
        follower: of the channels that go along best, the one whose silence changes least.
        needed: the channel whose silence changes most.
    """

    layer: LayerInfo
    versions: Versions
    chance: float
    without: Floats = field(repr=False)
    follower: int
    needed: int

    def change(self, channel: int) -> float:
        """Return by how much the class's probability changes without the channel."""
        return float(self.without[channel]) - self.chance


def class_channels(scene: LessonScene, options: Options) -> ClassChannels:
    """Find both channels of the layer that the options name.

    Raises:
        HookVizError: the model makes its input by a function of its own, or puts out no scores.
    """
    layer = layer_of(scene, options["layer"])
    before = own_scores(scene)
    powers = scores_without_each(scene, layer)
    powers = np.exp(powers - powers.max(1, keepdims=True))
    without = powers[:, before.best] / powers.sum(1)
    of_versions = versions(scene, layer)
    chance = float(before.chances[before.best])
    changes = np.abs(without - chance)
    best_correlated = np.argsort(-of_versions.correlations, kind="stable")[
        : max(1, len(without) // _FIRST)
    ]
    follower = int(best_correlated[changes[best_correlated].argmin()])
    return ClassChannels(layer, of_versions, chance, without, follower, int(changes.argmax()))


def verdict(both: ClassChannels, channel: int) -> str:
    """Return a sentence on whether the channel's silence matters."""
    if abs(both.change(channel)) < _HARDLY:
        return say("That hardly matters.")
    if both.change(channel) < 0:
        return say("The class needed it.")
    return say("The class does better without it.")


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    both = class_channels(scene, options)
    before = own_scores(scene)
    alike = both.versions.correlations
    return {
        "layer": both.layer.name,
        "channels": len(both.without),
        "label": before.name(before.best),
        "chance": chance(both.chance),
        "versions": len(both.versions.scores),
        "channel": both.follower,
        "correlation": float(alike[both.follower]),
        "without": chance(float(both.without[both.follower])),
        "verdict": verdict(both, both.follower),
        "needed": both.needed,
        "needed_correlation": float(alike[both.needed]),
        "needed_without": chance(float(both.without[both.needed])),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    both = class_channels(scene, options)
    name = both.layer.name
    return {
        "layer": name,
        "channel": str(both.follower),
        "silenced": f"{name}:{both.follower}",
    }


PART = Part(
    name="no-cause",
    sentence=mark(
        "A channel that rises and falls with the class over many versions of the image and whose "
        "silence changes least, and the channel that the class needs most."
    ),
    options=(Option("layer", "middle", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)
