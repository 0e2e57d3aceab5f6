"""Change or rebuild an image as typed functions: adversarial changes, DeepDream, inversion.

The lenses *toaster*, *dream* and *inversion* show the same pictures as they grow.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.explaining.scores import adversarial
from hookviz.explaining.scores.adversarial import MOST, PictureChange
from hookviz.heatmaps import InputOptions, Network, Target
from hookviz.hooking.device import with_numbers
from hookviz.hooking.selection import Selector
from hookviz.lenses.contract.running import resolve_subject
from hookviz.lenses.contract.shared_choices import step_callback
from hookviz.lenses.dream import run_dream
from hookviz.lenses.inversion import run_inversion
from hookviz.synthesis.inversion import SMOOTH, Inversion
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.settings import MaximizationConfig
from hookviz.types import Pixels


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; this wants gradients
def smallest_change(
    model: Network,
    image: Any,
    *,
    target: Target = None,
    steps: int = 40,
    most: int = MOST,
    sure: int = 0,
    **options: Unpack[InputOptions],
) -> PictureChange:
    """Change an image as little as was found to do until the network takes it for another class.

    Projected gradient descent (Madry et al., 2018) within the smallest bound on each number that
    was found to do, in whole levels of 255. That a search fails is no proof that there is none.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module` of images.
        image: anything that `capture` takes, one of it, not a tensor.
        target: the class to make of it; a toaster by default, or else the second likeliest.
        steps: passes there and back within each bound, at most.
        most: the largest bound, in levels of 255.
        sure: how likely the class has to be, in percent; it has to be the likeliest anyway.
        options: ``size``, ``whole``, ``progress``.

    Returns:
        The changed `picture`, ``(H, W, 3)`` uint8, whether it was `found` and within which `bound`.

    Raises:
        SettingError: the class is unknown, or a setting is out of its range.
        HookVizError: the network takes the image for that class already, or makes its input by a
            function of its own.
        ModelError: it puts out no class scores, or can't be differentiated.

    >>> model = hookviz.load_model("shapesnet")
    >>> change = hookviz.smallest_change(model, "assets/samples/star.jpg", target="circle")
    >>> change.found, change.picture.shape, change.moved <= change.bound
    (True, (128, 128, 3), True)
    """
    settings = {"steps": steps, "most": most, "sure": sure}
    arguments = {**options, "target": target}
    subject, chosen = resolve_subject("toaster", model, image, settings, arguments)
    return adversarial.smallest_change(
        subject.model,
        subject.model_input,
        chosen["target"],
        steps=chosen["steps"],
        most=chosen["most"],
        sure=chosen["sure"] / 100,
        progress=subject.progress,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Dream:
    """Image changed so that a layer responds more strongly.

    Attributes:
        layer: whose mean square was raised.
        picture: RGB, uint8, ``(H, W, 3)``.
        history: the layer's mean square at each step, ``(steps,)``, before the step was made.
        value: that of `picture`.
    """

    layer: str
    picture: Pixels = field(repr=False)
    history: NDArray[np.float64] = field(repr=False)
    value: float


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; this wants gradients
def dream(
    model: Network,
    image: Any,
    *,
    layer: Selector | None = None,
    steps: int = 64,
    rate: float = 0.5,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> Dream:
    """Raise the mean square of a layer's output by gradient ascent on the image.

    DeepDream (Mordvintsev, Olah and Tyka, 2015) in Fourier space.

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module` of images.
        image: anything that `capture` takes, one of it.
        layer: by its name or what else `observe` takes that fits one; the last conv layer by
            default.
        steps: passes there and back.
        rate: how far each step goes.
        seed: of how the image is moved before each step.
        options: ``size``, ``whole``, ``progress``.

    Raises:
        SettingError: the layer is unknown, or a setting is out of its range.
        HookVizError: the model takes no pictures.
        ModelError: there is no gradient to follow.

    >>> model = hookviz.load_model("shapesnet")
    >>> dream = hookviz.dream(model, "assets/samples/star.jpg", layer="stage2.first.conv", steps=8)
    >>> dream.picture.shape, bool(dream.value > dream.history[0])
    ((128, 128, 3), True)
    """
    settings = {"layer": layer, "steps": steps, "rate": rate, "seed": seed}
    subject, chosen = resolve_subject("dream", model, image, settings, options)
    method = MaximizationConfig(size=None, seed=chosen["seed"], rate=chosen["rate"])
    optimization = run_dream(subject, chosen["layer"], method, chosen["steps"], _show_nothing)
    history = np.array(optimization.history, np.float64)[:, 0]
    (value,) = optimization.measured()
    return Dream(chosen["layer"], optimization.pictures()[0], history, float(value))


@with_numbers
@torch.inference_mode(mode=False)  # the caller's; this wants gradients
def invert(
    model: Network,
    image: Any,
    *,
    layer: Selector,
    steps: int = 96,
    smooth: float = SMOOTH.strength,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> Inversion:
    """Rebuild an image from one layer's activations alone (Mahendran and Vedaldi, 2015).

    Args:
        model: from `load_model` or `wrap`, or any `nn.Module` of images.
        image: anything that `capture` takes, one of it.
        layer: by its name or what else `observe` takes that fits one.
        steps: passes there and back.
        smooth: weight of the total variation.
        seed: of the noise to begin with.
        options: ``size``, ``whole``, ``progress``.

    Raises:
        SettingError: the layer is unknown, or a setting is out of its range.
        HookVizError: the model takes no pictures.
        ModelError: the layer puts out no maps, or zeros alone.

    >>> model = hookviz.load_model("shapesnet")
    >>> rebuilt = hookviz.invert(model, "assets/samples/star.jpg", layer="stem.first.conv", steps=8)
    >>> rebuilt.picture.shape, 0 < rebuilt.distance < 1
    ((128, 128, 3), True)
    """
    settings = {"layer": layer, "steps": steps, "smooth": smooth, "seed": seed}
    subject, chosen = resolve_subject("inversion", model, image, settings, options)
    method = replace(SMOOTH, strength=chosen["smooth"], seed=chosen["seed"])
    after = step_callback(subject, chosen["steps"], _show_nothing)
    return run_inversion(subject, chosen["layer"], method, chosen["steps"], after)


def _show_nothing(_optimization: Optimization) -> None:
    """Draw nothing meanwhile."""
