"""Train a small network on drawings, and look at it step by step."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from hookviz.drawing.pictures import encode_png, middle_square
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.pictures import picture_of
from hookviz.lessons.small_network import (
    BATCH,
    CLASSES,
    DRAWINGS,
    SIDE,
    STEPS,
    UNSEEN,
    Frame,
    random_network,
    weight_count,
)
from hookviz.lessons.trainings import SharedTraining, training
from hookviz.types import Pixels
from hookviz.wording import number, percent

WRITTEN: Mapping[str, str] = {"small": "0.0003", "right": "0.03", "large": "0.3"}
"""Learning rates as they are written, by what they are."""
RATES: Mapping[str, float] = {name: float(written) for name, written in WRITTEN.items()}
"""Learning rates by what they are."""
SEEDS = (1, 2, 3)
AT = "at"
"""Among the options which frame is looked at, once there are some; in no file."""

_CHOICES = ("nothing", "rate", "seed")


def training_of(options: Options) -> SharedTraining:
    """Return the training that the options name, as far as anybody took it."""
    return training(RATES[options["rate"]], int(options["seed"]))


def fixed_picture(scene: LessonScene) -> Pixels:
    """Return the middle of the scene's image as the small network takes it, ``(SIDE, SIDE, 3)``."""
    return middle_square(picture_of(scene), SIDE)


def first_frame(seed: int) -> Frame:
    """Return the network with its random weights, of which nothing is measured yet."""
    weights = {name: each.detach() for name, each in random_network(seed).named_parameters()}
    return Frame(0, weights, float("nan"), float("nan"), ())


def kernel_pixels(frame: Frame) -> Pixels:
    """Return the first kernels as pictures, uint8 ``(kernels, 7, 7, 3)``.

    Grey is 0, and the largest weight of a kernel, signs aside, is at one end of a colour.
    """
    kernels: Tensor = frame.weights["conv1.weight"]
    sizes = kernels.abs().amax((1, 2, 3), keepdim=True)
    shares = kernels / torch.where(sizes > 0, sizes, 1)
    colours = (127.5 + 127.5 * torch.nan_to_num(shares)).permute(0, 2, 3, 1)
    pixels: Pixels = colours.round().to(torch.uint8).numpy()
    return pixels


def strip_png(frame: Frame) -> bytes:
    """Return the first kernels side by side as a PNG, a pixel for each weight's place."""
    kernels = kernel_pixels(frame)
    between = np.full((kernels.shape[1], 1, 4), 0, np.uint8)
    opaque = np.full((*kernels.shape[:3], 1), 255, np.uint8)
    with_alpha = np.concatenate([kernels, opaque], 3)
    pieces = [piece for kernel in with_alpha for piece in (kernel, between)]
    return encode_png(np.concatenate(pieces[:-1], 1))


def what_is_seen(options: Options) -> str:
    """Return a sentence on the frame that is looked at, or on what to do before there is one."""
    frames = training_of(options).frames
    if not options.get(AT) or not frames:
        return say("What comes of it will stand here.")
    frame = frames[min(int(options[AT]), len(frames) - 1)]
    return say(
        "After {step:,} of {steps:,} steps the loss is {loss}, from {first} at the beginning, and "
        "{right} of the drawings that it never saw are named right.",
        step=frame.step,
        steps=STEPS,
        loss=number(frame.loss),
        first=number(frames[0].loss),
        right=percent(frame.accuracy),
    )


def _facts(_scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    network = random_network(1)
    kernel = network.conv1.weight[0]
    return {
        "weights": weight_count(),
        "kernels": len(network.conv1.weight),
        "kernel_weights": kernel.numel(),
        "classes": len(CLASSES),
        "drawings": DRAWINGS,
        "unseen": UNSEEN,
        "steps": STEPS,
        "batch": BATCH,
        "guess": percent(1 / len(CLASSES)),
        "rate": WRITTEN[options["rate"]],
        **WRITTEN,
        "seen": what_is_seen(options),
    }


PART = Part(
    name="training",
    sentence=mark(
        "A small network that is trained on drawings in the browser's sight: its first kernels, "
        "maps of the image, loss and gradients, step by step, to play and to scrub through."
    ),
    options=(
        Option(
            "choose",
            "nothing",
            mark("What the learner can choose: nothing, rate or seed."),
            choice(_CHOICES),
        ),
        Option(
            "rate",
            "right",
            mark("The learning rate at first: small, right or large."),
            choice(RATES),
        ),
        Option(
            "seed",
            "1",
            mark("Which random numbers it begins with: 1, 2 or 3."),
            whole_number(1, len(SEEDS)),
        ),
    ),
    facts=_facts,
)
