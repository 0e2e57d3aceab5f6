"""Compare guided backpropagation with the plain gradient, for trained and for random weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.explaining.attribution.gradients import input_gradient
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import Map, correlation
from hookviz.lessons.part import Fact, LessonScene, Options, Part
from hookviz.lessons.pictures import picture_of
from hookviz.lessons.scores import own_scores
from hookviz.models.derived_models import untrained
from hookviz.ui.lessons.picks import choose_button
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

OWN, RANDOM = "own", "random"
"""Weights: the network's own, or random ones."""


@dataclass(frozen=True, eq=False, slots=True)
class Guided:
    """The gradient of a class's score at the image, summed over its colours, ``(H, W)`` each.

    Attributes:
        plain: the gradient.
        guided: with negative numbers set to 0 at every ReLU on the way back.
        relus: number of those ReLUs.
    """

    plain: Map
    guided: Map
    relus: int


def weights_of(scene: LessonScene) -> tuple[str, ...]:
    """Return the weights to choose from; an untrained network has only its own."""
    return (OWN,) if scene.model.weights == "random" else (OWN, RANDOM)


def guided_at_image(scene: LessonScene, weights: str) -> Guided:
    """Return both gradients of the likeliest class's score, with the given weights.

    Raises:
        HookVizError: the network has no class scores, or can't be differentiated.
    """
    nbytes = 8 * scene.model_input.tensor.numel()
    return scene.cached(("guided", weights), lambda: _compute(scene, weights), nbytes)


def _compute(scene: LessonScene, weights: str) -> Guided:
    model = untrained(scene.model) if weights == RANDOM else scene.model
    target = AttributionTarget(own_scores(scene).best)
    plain, guided = (
        input_gradient(model, scene.model_input, target, guided=is_guided)
        for is_guided in (False, True)
    )
    sums = [np.asarray(each.gradient.sum(0), np.float32) for each in (plain, guided)]
    return Guided(sums[0], sums[1], guided.guided)


def _facts(scene: LessonScene, _options: Options) -> Mapping[str, Fact]:
    own, *_, random = (guided_at_image(scene, each) for each in (OWN, *weights_of(scene)))
    return {
        "label": own_scores(scene).name(own_scores(scene).best),
        "guiding": own.relus,
        "plain_alike": abs(correlation(own.plain, random.plain)),
        "guided_alike": abs(correlation(own.guided, random.guided)),
    }


PART = Part(
    name="guided",
    sentence=mark(
        "The image, the gradient at it and guided backpropagation beside each other, with the "
        "network's own weights or with random ones."
    ),
    facts=_facts,
)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choice of weights, and below it the image, its gradient and the guided one."""
    del options
    titles = {OWN: say("trained"), RANDOM: say("random")}
    names = {each: titles[each] for each in weights_of(scene)}
    weights = choose_button(say("Weights"), names, key, "weights", first=OWN)
    both = guided_at_image(scene, weights)
    image, gradient, guided = st.columns(3, gap="small", wrap=False)
    with image:
        crop = picture_of(scene)  # to which the gradients belong
        st.image(crop, width="stretch", output_format="JPEG", alt=say("The image"))
        st.caption(say("The image"))
    for column, values, title in (
        (gradient, both.plain, say("Gradient")),
        (guided, both.guided, say("Guided, by {count} ReLUs", count=both.relus)),
    ):
        with column:
            st.image(_gradient_png(values), width="stretch", alt=title)
            st.caption(plain(title))


def _gradient_png(values: Map) -> bytes:
    """Draw a gradient on a scale to the magnitude that one number in a hundred exceeds."""
    sizes = np.nan_to_num(np.abs(values), posinf=0)
    end = float(np.percentile(sizes, 99)) or float(sizes.max()) or 1.0
    limits = make_grid(np.array([[[-end, end]]], np.float32)).limits
    return make_grid(values[None], limits=limits, colormap=diverging()).channel_png(0, 1)
