"""Class scores for live parts: as the network is, without channels, and of changed pictures."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.channel_ablation import ChannelAblation
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.language.naming import class_label
from hookviz.lessons.kept import kept
from hookviz.lessons.part import Scene
from hookviz.types import LayerInfo, Model, ModelInput

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Scores:
    """What the network says of one input.

    Attributes:
        scores: before the softmax, float64 ``(classes,)``.
        names: of the classes, as many as are known.
    """

    scores: Floats
    names: tuple[str, ...] = field(repr=False)

    @property
    def chances(self) -> Floats:
        """The softmax of the scores, ``(classes,)``."""
        raised = np.exp(self.scores - self.scores.max())
        chances: Floats = raised / raised.sum()
        return chances

    @property
    def best(self) -> int:
        """The likeliest class."""
        return int(self.scores.argmax())

    def first(self, count: int) -> list[int]:
        """The likeliest classes, in order."""
        return [int(each) for each in np.argsort(-self.scores, kind="stable")[:count]]

    def name(self, target: int) -> str:
        """What a class is called in the language that is spoken."""
        return class_label(target, self.names)


def scores_of(model: Model, model_input: ModelInput) -> Scores:
    """What the model says of an input, in a pass of its own."""
    with private_replica(model) as replica:
        return _scores(model, class_scores(model, replica, model_input.tensor))


def own_scores(scene: Scene) -> Scores:
    """What the scene's model says of the scene's input."""
    return kept(scene, ("scores",), lambda: scores_of(scene.model, scene.model_input), 10_000)


def scores_without(scene: Scene, layer: LayerInfo, channels: Collection[int]) -> Scores:
    """What the model says where those channels of a conv layer put out 0, before any batch norm."""
    if not channels:
        return own_scores(scene)
    silent = sorted(channels)

    def silence(call: hooks.Call) -> Tensor:
        output: Tensor = call.output.clone()
        output[:, silent] = 0
        return output

    with private_replica(scene.model) as replica, hooks.edit(replica, [layer.name], silence):
        return _scores(scene.model, class_scores(scene.model, replica, scene.model_input.tensor))


def scores_without_each(scene: Scene, layer: LayerInfo) -> Floats:
    """The class scores without each channel of a conv layer alone, float64 ``(C, classes)``."""
    room = 8 * layer.output_shape[0] * len(own_scores(scene).scores)
    return kept(scene, ("without", layer.name), lambda: _without_each(scene, layer), room)


def _without_each(scene: Scene, layer: LayerInfo) -> Floats:
    before = own_scores(scene)
    passes = ChannelAblation(scene.model, scene.model_input, layer)
    after: Floats = passes.scores_without_each(
        torch.from_numpy(before.scores), ProgressReporter(None)
    ).numpy()
    return after


def effects(scene: Scene, layer: LayerInfo) -> Floats:
    """How far the score of the likeliest class falls without each channel, float64 ``(C,)``.

    Below zero where the class gains from the channel's silence.
    """
    before = own_scores(scene)
    fallen: Floats = before.scores[before.best] - scores_without_each(scene, layer)[:, before.best]
    return fallen


def by_effect(fallen: Floats, order: str) -> list[int]:
    """All channels: first those that speak most for the class, or with ``"least"`` matter least."""
    keys = np.abs(fallen) if order == "least" else -fallen
    return [int(each) for each in np.argsort(keys, kind="stable")]


def _scores(model: Model, logits: Tensor) -> Scores:
    return Scores(logits[0].cpu().double().numpy(), model.categories)
