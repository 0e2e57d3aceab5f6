"""Compute class scores for live parts, and write probabilities and their ratios.

Scores are of the unchanged network, without channels, and of changed pictures. Small probabilities
keep two digits; a ratio is written only if it shows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.explaining.patching.part_changes import ChannelAblation
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.language.naming import class_label
from hookviz.language.saying import localised, say, sentences
from hookviz.lessons.part import LessonScene
from hookviz.outputs.answer import LOGITS, Reading
from hookviz.types import LayerInfo, Model, ModelInput

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Scores:
    """Class scores of one input, with the names of the classes.

    Attributes:
        scores: as the network puts them out, float64 ``(classes,)``.
        names: of the classes, as many as are known.
        reading: what the scores are.
    """

    scores: Floats
    names: tuple[str, ...] = field(repr=False)
    reading: Reading = field(default_factory=partial(Reading, LOGITS))

    @property
    def chances(self) -> Floats:
        """The probabilities, ``(classes,)``."""
        chances: Floats = self.reading.values(torch.from_numpy(self.scores)).numpy()
        return chances

    @property
    def best(self) -> int:
        """The likeliest class."""
        return int(self.scores.argmax())

    def moved(self, changes: Mapping[int, float]) -> "Scores":
        """Return the scores with some of them changed, by the number of their class."""
        scores = self.scores.copy()
        for target, score in changes.items():
            scores[target] = score
        return Scores(scores, self.names, self.reading)

    def first(self, count: int) -> list[int]:
        """Return the likeliest classes, in order."""
        return [int(target) for target in np.argsort(-self.scores, kind="stable")[:count]]

    def name(self, target: int) -> str:
        """Return what a class is called in the language that is spoken."""
        return class_label(target, self.names)


def scores_of(model: Model, model_input: ModelInput) -> Scores:
    """Compute the model's class scores of an input, in a pass of its own."""
    with private_replica(model) as replica:
        found = class_scores(model, replica, model_input.tensor)
    return named_scores(model, found.values[0], found.reading)


def own_scores(scene: LessonScene) -> Scores:
    """Return the class scores of the scene's model for the scene's input."""
    return scene.cached(("scores",), lambda: scores_of(scene.model, scene.model_input), 10_000)


def scores_without(scene: LessonScene, layer: LayerInfo, channels: Collection[int]) -> Scores:
    """Compute the class scores with those channels of a conv layer at 0, before any batch norm."""
    if not channels:
        return own_scores(scene)
    silent = sorted(channels)

    def silence(call: hooks.Call) -> Tensor:
        output: Tensor = call.output.clone()
        output[:, silent] = 0
        return output

    with private_replica(scene.model) as replica, hooks.edit(replica, [layer.name], silence):
        found = class_scores(scene.model, replica, scene.model_input.tensor)
    return named_scores(scene.model, found.values[0], own_scores(scene).reading)


def scores_without_each(scene: LessonScene, layer: LayerInfo) -> Floats:
    """Return the class scores without each channel of a conv layer, float64 ``(C, classes)``."""
    nbytes = 8 * layer.output_shape[0] * len(own_scores(scene).scores)
    return scene.cached(("without", layer.name), lambda: _without_each(scene, layer), nbytes)


def _without_each(scene: LessonScene, layer: LayerInfo) -> Floats:
    before = own_scores(scene)
    passes = ChannelAblation(scene.model, scene.model_input, layer)
    after: Floats = passes.scores_with_each(
        torch.from_numpy(before.scores), ProgressReporter(None)
    ).numpy()
    return after


def effects(scene: LessonScene, layer: LayerInfo) -> Floats:
    """Return how far the likeliest class's score falls without each channel, float64 ``(C,)``.

    Below zero where the class gains from the channel's silence.
    """
    before = own_scores(scene)
    fallen: Floats = before.scores[before.best] - scores_without_each(scene, layer)[:, before.best]
    return fallen


def by_effect(fallen: Floats, order: str) -> list[int]:
    """Sort all channels: those that speak most for the class first, or that matter ``"least"``."""
    keys = np.abs(fallen) if order == "least" else -fallen
    return [int(channel) for channel in np.argsort(keys, kind="stable")]


def named_scores(model: Model, scores: Tensor, reading: Reading) -> Scores:
    """Return scores ``(classes,)`` with what they are and the classes' names.

    Raises:
        ModelError: they have no probabilities.
    """
    if not reading.is_share:
        needs = say(
            "{model} gives no probabilities of classes, which this part shows.", model=model.title
        )
        raise ModelError(sentences(needs, reading.question))
    values: Floats = scores.detach().cpu().double().numpy()
    return Scores(values, model.categories, reading)


_LEAST = 1e-6  # below which a probability is only said to be smaller
_DIGITS = (3, 2, 1)


def chance(share: float) -> str:
    """Write a probability with at least two digits: ``"98.7 %"``, ``"0.14 %"``, ``"0.0021 %"``."""
    if share < _LEAST:
        return say("< {share} %", share=localised(f"{100 * _LEAST:.4f}"))
    if share < 1 and _rounded(share) >= 1:
        return say("> {share} %", share=localised("99.9"))
    return say("{share} %", share=localised(_text(share)))


def ratio(larger: float, smaller: float) -> str:
    """Write how many times as large one probability is as another, as `chance` shows the two.

    With as many digits, three at most, as both the probabilities and what is shown of them bear
    out; empty where none is, or where one is too small or too near to one to be shown.
    """
    if smaller < _LEAST or (larger < 1 and _rounded(larger) >= 1):
        return ""
    true, seen = larger / smaller, _rounded(larger) / _rounded(smaller)
    for digits in _DIGITS:
        written = f"{true:.{digits - 1}e}"
        if written == f"{seen:.{digits - 1}e}":
            number = float(written)
            power = int(written.partition("e")[2])
            return localised(f"{number:,.{max(0, digits - 1 - power)}f}")
    return ""


def _text(share: float) -> str:
    """Return a share in percent: with one decimal, or where it is small with two digits."""
    percent = 100 * share
    if percent >= 1:
        return f"{percent:.1f}"
    power = int(f"{percent:.1e}".partition("e")[2])
    return f"{percent:.{1 - power}f}"


def _rounded(share: float) -> float:
    return float(_text(share)) / 100
