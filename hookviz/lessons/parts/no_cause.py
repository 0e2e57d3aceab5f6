"""A channel that goes along with the class and hardly matters for it, and the one that matters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.scores import Floats, own_scores, scores_without_each
from hookviz.lessons.versions import Versions, versions
from hookviz.types import LayerInfo
from hookviz.wording import percent

_FIRST = 8  # one in so many channels goes along with the class, by what is counted here
_HARDLY = 0.02  # of the probability


@dataclass(frozen=True, eq=False, slots=True)
class ClassChannels:
    """What goes along with the class in a layer, and what the class needs of it.

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
        """By how much the probability changes without the channel."""
        return float(self.without[channel]) - self.chance


def class_channels(scene: LessonScene, options: Options) -> ClassChannels:
    """Both channels of the layer that the options name.

    Raises:
        HookVizError: the model makes its input by a function of its own, or puts out no scores.
    """
    layer = layer_of(scene, options["layer"])
    before = own_scores(scene)
    raised = scores_without_each(scene, layer)
    raised = np.exp(raised - raised.max(1, keepdims=True))
    without = raised[:, before.best] / raised.sum(1)
    seen = versions(scene, layer)
    chance = float(before.chances[before.best])
    changes = np.abs(without - chance)
    along = np.argsort(-seen.correlations, kind="stable")[: max(1, len(without) // _FIRST)]
    follower = int(along[changes[along].argmin()])
    return ClassChannels(layer, seen, chance, without, follower, int(changes.argmax()))


def verdict(found: ClassChannels, channel: int) -> str:
    """Whether the channel's silence matters, in a sentence."""
    if abs(found.change(channel)) < _HARDLY:
        return say("That hardly matters.")
    if found.change(channel) < 0:
        return say("The class needed it.")
    return say("The class does better without it.")


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    found = class_channels(scene, options)
    before = own_scores(scene)
    alike = found.versions.correlations
    return {
        "layer": found.layer.name,
        "channels": len(found.without),
        "label": before.name(before.best),
        "chance": percent(found.chance),
        "versions": len(found.versions.scores),
        "channel": found.follower,
        "correlation": float(alike[found.follower]),
        "without": percent(float(found.without[found.follower])),
        "verdict": verdict(found, found.follower),
        "needed": found.needed,
        "needed_correlation": float(alike[found.needed]),
        "needed_without": percent(float(found.without[found.needed])),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    found = class_channels(scene, options)
    name = found.layer.name
    return {
        "layer": name,
        "channel": str(found.follower),
        "silenced": f"{name}:{found.follower}",
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
