"""Find a channel that correlates with the class but hardly matters, and the one that matters.

1. Change the image in many ways.
2. Correlate each channel's mean behind its ReLU with the class's score.
3. Silence each channel, and compare the class's probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.drawing.panels import ChartPanel
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import activation_of, layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.lessons.pictures import brightened, noisy, shifted, turned
from hookviz.lessons.scores import (
    Floats,
    Scores,
    chance,
    own_scores,
    scores_without,
    scores_without_each,
)
from hookviz.types import ActivationKey, LayerInfo, Pixels
from hookviz.ui.components.panels import chart
from hookviz.ui.lessons.figures import show_before_and_after
from hookviz.ui.lessons.picks import choose_button
from hookviz.ui.state import plain

_FIRST = 8  # one in eight channels counts as correlated
_HARDLY = 0.02  # change of the probability
_FADED = (0.85, 0.7, 0.55, 0.4, 0.25, 0.1)  # share of the picture, mixed with grey
_TURNED = (-60, -30, -15, 15, 30, 60)  # degrees
_SHIFTED = (-24, -12, 12, 24)  # pixels
_LIGHT = (40, 70, 130)  # hundredths
_NOISE = (16, 32, 64)  # levels of 255
_GREY = 128


@dataclass(frozen=True, eq=False, slots=True)
class Versions:
    """Class scores and channel means of every version; the first is the image itself.

    Attributes:
        scores: of the image's likeliest class, ``(N,)``.
        means: of each channel behind its ReLU, ``(N, C)``.
    """

    scores: Floats = field(repr=False)
    means: Floats = field(repr=False)

    @property
    def correlations(self) -> Floats:
        """Pearson's correlation of each channel's mean with the score, ``(C,)``; 0 for none."""
        means, scores = self.means - self.means.mean(0), self.scores - self.scores.mean()
        sizes = np.sqrt(np.square(means).sum(0) * np.square(scores).sum())
        correlations: Floats = np.where(
            sizes > 0, means.T @ scores / np.where(sizes > 0, sizes, 1), 0.0
        )
        return correlations


def pictures_of(picture: Pixels) -> list[Pixels]:
    """Return the versions of a picture, RGB uint8 ``(H, W, 3)``; the first is itself."""
    faded = [
        np.rint(_GREY + share * (picture.astype(np.float64) - _GREY)).astype(np.uint8)
        for share in _FADED
    ]
    return [
        picture,
        *faded,
        *(turned(picture, degrees) for degrees in _TURNED),
        *(shifted(picture, right, 0) for right in _SHIFTED),
        *(brightened(picture, percent) for percent in _LIGHT),
        *(noisy(picture, levels) for levels in _NOISE),
    ]


def versions(scene: LessonScene, layer: LayerInfo) -> Versions:
    """Compute class scores and a conv layer's channel means of every version of the scene's image.

    Raises:
        HookVizError: the model makes its input by a function of its own.
    """
    nbytes = 8 * 32 * (layer.output_shape[0] + 1)
    return scene.cached(("versions", layer.name), lambda: _versions(scene, layer), nbytes)


def _versions(scene: LessonScene, layer: LayerInfo) -> Versions:
    _, picture = check_repaints(scene.model, scene.model_input)
    target = own_scores(scene).best
    address = activation_of(scene, layer)
    scores, means = [], []
    for version in pictures_of(picture):
        model_input = repainted(scene.model, scene.model_input, version)
        recorded = capture(scene.model, model_input, ActivationKey.read(address).layer)
        assert recorded.logits is not None  # the image itself has class scores
        scores.append(float(recorded.logits[target]))
        means.append(recorded[address].values.double().flatten(1).mean(1).numpy())
    return Versions(np.array(scores), np.stack(means))


@dataclass(frozen=True, eq=False, slots=True)
class ClassChannels:
    """The channel of a layer that merely correlates with the class, and the one that matters.

    Attributes:
        layer: the layer.
        versions: of the image.
        chance: the class's probability with all channels.
        without: its probability without each channel alone, ``(C,)``.
        follower: the correlated channel whose silence changes least.
        needed: the channel whose silence changes most.
    """

    layer: LayerInfo
    versions: Versions
    chance: float
    without: Floats = field(repr=False)
    follower: int
    needed: int

    def change(self, channel: int) -> float:
        """Return the change of the class's probability without a channel."""
        return float(self.without[channel]) - self.chance


def class_channels(scene: LessonScene, options: Options) -> ClassChannels:
    """Find both channels of the layer in the options.

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


def _verdict(both: ClassChannels, channel: int) -> str:
    """Return a sentence on whether the channel's silence matters."""
    if abs(both.change(channel)) < _HARDLY:
        return say("That hardly matters.")
    if both.change(channel) < 0:
        return say("The class needed it.")
    return say("The class does better without it.")


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    both = class_channels(scene, options)
    before = own_scores(scene)
    correlations = both.versions.correlations
    return {
        "layer": both.layer.name,
        "channels": len(both.without),
        "label": before.name(before.best),
        "chance": chance(both.chance),
        "versions": len(both.versions.scores),
        "channel": both.follower,
        "correlation": float(correlations[both.follower]),
        "without": chance(float(both.without[both.follower])),
        "verdict": _verdict(both, both.follower),
        "needed": both.needed,
        "needed_correlation": float(correlations[both.needed]),
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


_FOLLOWS, _NEEDED = "follows", "needed"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choice of both channels, how it correlates, and what its silence changes."""
    both = class_channels(scene, options)
    before: Scores = own_scores(scene)
    names = {
        _FOLLOWS: say("Channel {channel}: goes along", channel=both.follower),
        _NEEDED: say("Channel {channel}: changes most", channel=both.needed),
    }
    label = say("Which channel")
    chosen = choose_button(
        label, names, key, "channel", first=_FOLLOWS, label_visibility="collapsed"
    )
    channel = both.needed if chosen == _NEEDED else both.follower
    of_versions = both.versions
    panel = ChartPanel(
        say("The class and the channel over versions of the image"),
        tuple(str(index + 1) for index in range(len(of_versions.scores))),
        {
            say("score of {label}", label=before.name(before.best)): _spread(of_versions.scores),
            say("mean of channel {channel}", channel=channel): _spread(
                of_versions.means[:, channel]
            ),
        },
        kind="lines",
        unit=say("from its lowest to its highest"),
    )
    chart(panel, f"{key} chart", None)
    st.caption(
        plain(
            say(
                "Along the bottom: versions of the image. The correlation is {correlation:.2f}.",
                correlation=float(of_versions.correlations[channel]),
            )
        )
    )
    show_before_and_after(before, scores_without(scene, both.layer, [channel]), written=chance)
    st.markdown(f"**{plain(_verdict(both, channel))}**")


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale numbers to 0 … 1."""
    low, high = values.min(), values.max()
    spread: NDArray[np.float64] = (values - low) / ((high - low) or 1.0)
    return spread
