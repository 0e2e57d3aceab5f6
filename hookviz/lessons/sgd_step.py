"""Take one step of gradient descent beside a network, and say what became of the loss."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.layers.conv_kernels import Kernels, conv_kernels
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.forward_pass import backward_pass, differentiable, private_replica
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import Scores, named_scores
from hookviz.models.derived_models import with_tensors
from hookviz.outputs.answer import Reading
from hookviz.types import LayerInfo, Model

OTHERS = 6
"""How many other images are asked about."""
_KERNELS = 8  # that are kept


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One step: every weight w became w − rate · ∂loss/∂w.

    Attributes:
        loss_before, loss_after: −log softmax(scores)[target] of the image.
        before, after: the class scores.
        norm: the length of the gradient of all weights together.
        others: of some sample images the likeliest class before the step and after it.
        layer: the conv layer whose first kernels are kept.
        kernels, moved: those as they were, and what the step added,
            ``(kernels, inputs, rows, columns)``.
    """

    loss_before: float
    loss_after: float
    before: Scores
    after: Scores
    norm: float
    others: tuple[tuple[int, int], ...]
    layer: LayerInfo
    kernels: Kernels = field(repr=False)
    moved: Kernels = field(repr=False)

    @property
    def kept(self) -> int:
        """How many of the other images get the answer that they got before."""
        return sum(before == after for before, after in self.others)


def step_taken(scene: LessonScene, target: int, rate: float) -> Step:
    """Take one step that makes `target` likelier for the scene's image; the model stays as it is.

    Batch norms use their stored averages and nothing is dropped, since one image has no statistics
    of a batch.

    Raises:
        HookVizError: the network has no conv layer or no class scores, or can't be differentiated.
    """
    return scene.cached(("step", target, rate), lambda: _step(scene, target, rate), 100_000)


def _step(scene: LessonScene, target: int, rate: float) -> Step:
    model, images = scene.model, scene.model_input.tensor
    layer = layer_of(scene, "first")
    with differentiable(model, trainable=True) as network:
        named = nn.Module.named_parameters(network)
        weights = {name: weight for name, weight in named if weight.requires_grad}
        found = class_scores(model, network, images)
        scores, reading = found.values, found.reading
        loss = _loss(reading, scores, target)
        gradients = backward_pass(model, loss, [*weights.values()])
    present = [each.double().norm() for each in gradients if each is not None]
    with torch.inference_mode(mode=False), torch.no_grad():
        moved = {  # in the gradients' memory, which is nobody else's
            name: gradient.mul_(-rate).add_(weight)
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
            if gradient is not None
        }
    stepped = with_tensors(model, moved)
    with private_replica(stepped) as replica:
        later = class_scores(stepped, replica, images).values
    kernels, after = (conv_kernels(each, layer)[:_KERNELS] for each in (model, stepped))
    others = _other_inputs(scene)
    verdicts = [_answers(each, others) for each in (model, stepped)]
    return Step(
        float(loss.detach()),
        float(_loss(reading, later, target)),
        named_scores(model, scores[0], reading),
        named_scores(model, later[0], reading),
        float(torch.stack(present).norm()) if present else 0.0,
        tuple(zip(*verdicts, strict=True)),
        layer,
        kernels,
        after - kernels,
    )


def _other_inputs(scene: LessonScene) -> list[Tensor]:
    """Return some of the samples as the network takes them, without the scene's own image."""
    images = (reading.read(sample.path) for sample in samples())
    others = [image for image in images if image.digest != scene.image.digest][:OTHERS]
    return [prepare(scene.model, image).tensor for image in others]


def _answers(model: Model, images: list[Tensor]) -> list[int]:
    """Return the likeliest class of each image."""
    with private_replica(model) as replica:
        scores = [class_scores(model, replica, image).values for image in images]
    return [int(each[0].argmax()) for each in scores]


def _loss(reading: Reading, scores: Tensor, target: int) -> Tensor:
    return reading.loss(scores.float(), target)[0]
