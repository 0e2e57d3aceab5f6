"""Take one training step on the image, on a copy of the network.

The page compares the loss, the classes and the first kernels before the step and after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare_input
from hookviz.drawing.pictures import encode_png
from hookviz.explaining.layers.conv_kernels import Kernels, conv_kernels
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.forward_pass import backward_pass, differentiable, private_replica
from hookviz.images.samples import samples
from hookviz.language.saying import mark, say, say_count
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import Scores, named_scores, own_scores
from hookviz.models.derived_models import with_tensors
from hookviz.outputs.answer import Reading
from hookviz.types import LayerInfo, Model
from hookviz.ui.lessons.figures import show_before_and_after
from hookviz.ui.lessons.parts.first_kernels import in_colour, kernel_sheet
from hookviz.ui.lessons.picks import choose, choose_button, remember_options
from hookviz.ui.state import plain, sample_image
from hookviz.wording import number, percent

_RATES = ("0.00001", "0.0001", "0.001", "0.01", "0.1")
CLASS = "class"
"""Option that the page adds: the number of the class to teach."""
_CHOICES = 4  # classes to teach
OTHERS = 6
"""Other images whose classes are compared."""
_KERNELS = 8


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """One step: every weight w became w − rate · ∂loss/∂w.

    Attributes:
        loss_before, loss_after: −log softmax(scores)[target] of the image.
        before, after: the class scores.
        norm: length of the gradient of all weights together.
        others: likeliest class of other images before the step and after it.
        layer: the first conv layer.
        kernels, moved: its first kernels before the step, and what the step added,
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
        """Number of other images with the same class after the step."""
        return sum(before == after for before, after in self.others)


def take_step(scene: LessonScene, target: int, rate: float) -> Step:
    """Take one step that makes `target` likelier for the scene's image, on a copy of the model.

    The network is in evaluation mode: one image has no statistics of a batch.

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
        answer = class_scores(model, network, images)
        scores, reading = answer.values, answer.reading
        loss = _loss(reading, scores, target)
        gradients = backward_pass(model, loss, [*weights.values()])
    present = [each.double().norm() for each in gradients if each is not None]
    with torch.inference_mode(mode=False), torch.no_grad():
        moved = {  # in the gradients' memory
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
    """Return some samples as inputs of the network, without the scene's own image."""
    images = map(sample_image, samples())
    others = [image for image in images if image.digest != scene.image.digest][:OTHERS]
    return [prepare_input(scene.model, image).tensor for image in others]


def _answers(model: Model, images: list[Tensor]) -> list[int]:
    """Return the likeliest class of each image."""
    with private_replica(model) as replica:
        scores = [class_scores(model, replica, image).values for image in images]
    return [int(each[0].argmax()) for each in scores]


def _loss(reading: Reading, scores: Tensor, target: int) -> Tensor:
    return reading.loss(scores.float(), target)[0]


def classes_to_teach(scene: LessonScene) -> list[int]:
    """Return the likeliest classes from the second on: the first is learned already."""
    scores = own_scores(scene)
    return scores.first(_CHOICES + 1)[1:] or [scores.best]


def _target_of(scene: LessonScene, options: Options) -> int:
    return int(options.get(CLASS, "") or classes_to_teach(scene)[0])


def step_of(scene: LessonScene, options: Options) -> Step:
    """Return the step with the options' rate and class."""
    return take_step(scene, _target_of(scene, options), float(options["rate"]))


def verdict(step: Step) -> str:
    """Return a sentence on the loss after the step, and the classes of other images."""
    lost = len(step.others) - step.kept
    if step.loss_after >= step.loss_before:
        return say("The loss rose: the step went too far.")
    if not lost:
        return say("The loss fell, and the other pictures get the answers that they had.")
    return say_count(
        "The loss fell, but {count} of {others} other pictures gets another answer now.",
        "The loss fell, but {count} of {others} other pictures get another answer now.",
        lost,
        others=len(step.others),
    )


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    step = step_of(scene, options)
    target = _target_of(scene, options)
    return {
        "label": step.before.name(target),
        "rate": options["rate"],
        "before": number(step.loss_before),
        "after": number(step.loss_after),
        "chance": percent(float(step.before.chances[target])),
        "after_chance": percent(float(step.after.chances[target])),
        "length": number(step.norm),
        "others": len(step.others),
        "kept": step.kept,
        "verdict": verdict(step),
    }


PART = Part(
    name="sgd-step",
    sentence=mark(
        "One step of gradient descent on the image, with a class to teach and a learning rate to "
        "choose: loss, classes and first kernels before and after it."
    ),
    options=(Option("rate", "0.001", mark("The learning rate at first."), choice(_RATES)),),
    facts=_facts,
)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, the step's effect, and the first kernels with what it added."""
    classes, names = classes_to_teach(scene), own_scores(scene)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = choose(
            st.selectbox,
            say("Teach it that this is"),
            classes,
            key,
            CLASS,
            first=classes[0],
            format_func=names.name,
            width=220,
        )
        rates = {rate: rate for rate in _RATES}
        rate = choose_button(
            say("Learning rate"), rates, key, "rate", first=options["rate"], width="content"
        )
    chosen = {"rate": rate, CLASS: "" if target == classes[0] else str(target)}
    remember_options(key, chosen, {"rate": options["rate"], CLASS: ""})
    step = step_of(scene, {**options, **chosen})
    loss, chance = st.columns(2)
    loss.metric(say("Loss"), f"{number(step.loss_before)} → {number(step.loss_after)}")
    before, after = (float(each.chances[target]) for each in (step.before, step.after))
    chance.metric(
        plain(say("Probability of {label}", label=names.name(target))),
        f"{percent(before)} → {percent(after)}",
    )
    st.markdown(f"**{plain(verdict(step))}**")
    _show_kernels(step.kernels, step.moved, step.layer.name)
    show_before_and_after(step.before, step.after)


def _show_kernels(kernels: Kernels, moved: Kernels, layer: str) -> None:
    """Show the first kernels, what the step added, enlarged, and both together."""
    largest = float(np.abs(moved).max())
    share = largest / (float(np.abs(kernels).max()) or 1.0)
    sheets = (
        (plain(say("First kernels of {layer}", layer=layer)), kernels),
        (say("What the step added, enlarged"), moved),
        (say("After the step"), kernels + moved),
    )
    for column, (title, each) in zip(st.columns(3), sheets, strict=True):
        with column:
            pixels = in_colour(each if each.shape[1] == 3 else each[:, :1].repeat(3, 1))
            st.image(encode_png(kernel_sheet(pixels, 4)), width="stretch", alt=title)
            st.caption(title)
    st.caption(
        say(
            "The weight that moved most moved by {moved}, {share} of the largest weight.",
            moved=number(largest),
            share=percent(share),
        )
    )
