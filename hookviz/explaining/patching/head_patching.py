"""Patch what single attention heads put out, for `hookviz.patch` with ``by="head"``."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.explaining.attention.weights import attending_layers, no_attention_error
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.attention_heads import HeadChange, HeadOutputs
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    private_replica,
)
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput
from hookviz.wording import times

_Heads = Mapping[ActivationKey, Tensor]
"""What the heads put out in each call of a layer that attends, ``(N, heads, …)``."""


class HeadPatching:
    """Passes over two images, and over the second with one head as it was for the first.

    Attributes:
        scores: of the clean image, float64 ``(classes,)``.
        before: of the corrupted image.
    """

    def __init__(
        self, model: Model, images: tuple[ModelInput, ModelInput], layers: Iterable[str]
    ) -> None:
        """Run the clean image and the corrupted one, and keep what all heads in `layers` put out.

        Raises:
            ModelError: nothing in the network attends, or in other shapes for either image.
            SettingError: nothing attends in one of `layers`.
        """
        self._model, self._corrupted, self._layers = model, images[1].tensor, frozenset(layers)
        if not attending_layers(model, tuple(images[0].tensor.shape[1:])):
            raise no_attention_error(model)
        self._clean, self.scores = self._run(images[0].tensor)
        self._own, self.before = self._run(images[1].tensor)
        for at, heads in self._clean.items():
            other = self._own.get(at)
            if other is None or other.shape != heads.shape:
                raise ModelError(
                    say(
                        "The heads of {layer!r} put out {shape} for one image and {other} for "
                        "the other, so none can be patched. Name other layers.",
                        layer=at.layer,
                        shape=times(heads.shape),
                        other=say("nothing") if other is None else times(other.shape),
                    )
                )

    @property
    def counts(self) -> dict[str, int]:
        """Heads by layer, in order of execution."""
        return {at.layer: heads.shape[1] for at, heads in self._clean.items()}

    def changes(self, index: int, reporter: ProgressReporter) -> dict[str, Tensor]:
        """Return what patching each head does to a class's score, float64 ``(heads,)`` by layer."""
        done, total = 0, sum(self.counts.values())
        changes = {}
        for layer, count in self.counts.items():
            found = torch.zeros(count, dtype=torch.float64)
            for head in range(count):
                found[head] = self._patched_scores(layer, head)[index] - self.before[index]
                done += 1
                reporter.share(done / total)
            changes[layer] = found
        return changes

    def direct_effects(
        self, index: int, _reporter: ProgressReporter
    ) -> tuple[dict[str, Tensor], str]:
        """Return the gradient's estimates of `changes`, and why they are NaN where they are."""
        try:
            gradients = self._gradients(index)
        except ModelError as error:
            return {
                layer: torch.full((count,), torch.nan, dtype=torch.float64)
                for layer, count in self.counts.items()
            }, str(error)
        effects = {layer: torch.zeros(count).double() for layer, count in self.counts.items()}
        for at, gradient in gradients.items():
            if gradient is not None:  # without one the score does not depend on it
                effect = gradient.cpu() * (self._clean[at] - self._own[at])
                effects[at.layer] += effect.double().transpose(0, 1).flatten(1).sum(1)
        return effects, ""

    def _run(self, images: Tensor) -> tuple[_Heads, Tensor]:
        kept: dict[ActivationKey, Tensor] = {}

        def keep(at: ActivationKey, heads: Tensor) -> None:
            kept[at] = heads.cpu().clone()

        return kept, self._scores(images, self._layers, keep)

    def _patched_scores(self, layer: str, head: int) -> Tensor:
        def patch(at: ActivationKey, heads: Tensor) -> Tensor | None:
            if at.layer != layer:
                return None
            patched = heads.clone()
            patched[:, head] = self._clean[at][:, head].to(heads.device, heads.dtype)
            return patched

        return self._scores(self._corrupted, frozenset([layer]), patch)

    def _scores(self, images: Tensor, layers: frozenset[str], change: HeadChange) -> Tensor:
        """Run a pass with heads read or changed; return its scores, float64 ``(classes,)``."""
        with (
            private_replica(self._model) as replica,
            HeadOutputs(replica, layers, change).watching(),
        ):
            scores = class_scores(self._model, replica, images).values
        return scores[0].cpu().double()

    def _gradients(self, index: int) -> dict[ActivationKey, Tensor | None]:
        kept: dict[ActivationKey, Tensor] = {}
        with differentiable(self._model) as network:
            images = self._corrupted.to(*device_and_dtype(network), copy=True).requires_grad_()
            with HeadOutputs(network, self._layers, kept.__setitem__).watching():
                score = class_scores(self._model, network, images).values[0, index]
            found = backward_pass(self._model, score, list(kept.values()))
        return dict(zip(kept, found, strict=True))
