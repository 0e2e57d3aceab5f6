"""Make adversarial examples: a picture changed as little as possible, to fool a network.

Projected gradient descent (Madry et al., "Towards Deep Learning Models Resistant to Adversarial
Attacks", 2018, after Goodfellow et al., 2015): steps by the sign of the gradient of a class's loss,
brought back each time to where no number is further than a bound from where it was. The picture
that is looked at is one of whole levels, 0 to 255, that a file could hold.

The smallest change: the bound grows from one level of 255 by doubling until the descent finds a
change within it, and is then halved in on between the last that failed and the first that did not.
A search that fails is no proof that there is none. Whether the change fools other networks is
theirs to say; each is asked with a picture fitted to it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.inputs import prepare_input
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    private_replica,
)
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.saying import say
from hookviz.models.bundled import BUNDLED
from hookviz.models.loading import load_model
from hookviz.outputs.answer import Reading, Scores
from hookviz.types import Model, ModelInput, Pixels, Progress, ignore

STEPS = 10
"""Steps where nobody says how many."""

Look = Callable[[Pixels], tuple[NDArray[np.int16], bool]]
"""From a picture ``(H, W, 3)`` to which way each number is to move, and whether it is there."""


def descended(picture: Pixels, bound: int, steps: int, look: Look) -> tuple[Pixels, bool]:
    """Move a picture by signs of a gradient, no number further than `bound` levels of 255.

    x ← x + a·sign, cut to within the bound and to 0…255 (Madry et al., 2018). The step a shrinks
    from the bound to nothing, and looked at are whole levels, as a file holds them. Returns the
    picture, ``(H, W, 3)`` uint8, and whether it is there.

    It begins with `picture`, RGB uint8 ``(H, W, 3)``, and stays within `bound` levels of 255.
    `look` returns the signs, −1, 0 or 1, ``(H, W, 1 or 3)``, and whether that is far enough.
    """
    start = picture.astype(np.float64)
    low, high = np.maximum(start - bound, 0), np.minimum(start + bound, 255)
    moving = start
    for step in range(steps):
        shown = np.rint(moving).astype(np.uint8)
        signs, there = look(shown)
        if there:
            return shown, True
        moving = np.clip(moving + bound * (1 - step / steps) * signs, low, high)
    shown = np.rint(moving).astype(np.uint8)
    return shown, look(shown)[1]


def adversarial_input(
    model: Model,
    model_input: ModelInput,
    target: int,
    levels: int,
    progress: Progress = ignore,
    *,
    steps: int = STEPS,
    towards: bool = False,
) -> ModelInput:
    """Move the input away from a class, or towards it; no number changes by more than `levels`.

    The probability of the class `target` falls, or with `towards` rises. `levels` is the bound in
    levels of 255, `steps` the number of passes there and back.

    Raises:
        HookVizError: the model makes its input by a function of its own.
        ModelError: it puts out no class scores, or can't be differentiated.
    """
    _, picture = check_repaints(model, model_input)
    if levels == 0:
        return model_input
    reporter = ProgressReporter(progress, steps + 1)

    def look(shown: Pixels) -> tuple[NDArray[np.int16], bool]:
        current = repainted(model, model_input, shown)
        signs, _ = _rising_signs(model, current, target, reporter)
        reporter.step()
        return signs if towards else -signs, False

    return repainted(model, model_input, descended(picture, levels, steps, look)[0])


def _rising_signs(
    model: Model, model_input: ModelInput, target: int, reporter: ProgressReporter
) -> tuple[NDArray[np.int16], Tensor]:
    """Return which way each number moves for a class to get likelier, and the class scores.

    The signs are those of the gradient of the class's log-probability: −1, 0 or 1,
    ``(H, W, 1 or 3)``; the scores, before the softmax, are ``(classes,)`` on the CPU.

    Raises:
        ModelError: the network puts out no class scores, or can't be differentiated.
    """
    with differentiable(model) as network:
        images = model_input.tensor.to(*device_and_dtype(network), copy=True).requires_grad_()
        found = class_scores(model, network, images, reporter)
        scores = found.values.float()
        likely = -found.reading.loss(scores, target)[0]
        (gradient,) = backward_pass(model, likely, [images], reporter)
    kept = scores[0].detach().cpu()
    if gradient is None:
        return np.zeros((1, 1, 1), np.int16), kept
    signs: NDArray[np.int16] = gradient[0].sign().to("cpu", torch.int16).numpy()
    return signs.transpose(1, 2, 0), kept


MOST = 64
"""Levels of 255 that are tried at most, a quarter of black to white."""

TOASTER = "toaster"
"""The class to make of a picture, where a network knows it."""

Attempt = Callable[[int], tuple[Pixels, bool]]
"""From a bound in levels to the picture that was reached within it, and whether that will do."""


@dataclass(frozen=True, eq=False, slots=True)
class PictureChange:
    """A picture changed until the network takes it for a class.

    Attributes:
        model_input: the changed input, read back from the picture's PNG file.
        original: the picture before, RGB uint8 ``(H, W, 3)``.
        picture: the changed one, the same; what the file holds.
        target: the class's number.
        bound: the smallest bound within which a change was found, in levels of 255; the largest
            that was tried where none was.
        found: whether the network takes it for the class, as surely as was asked for.
        passes: how often the network ran forward and back.
        before: class scores of the picture before, ahead of the softmax, ``(classes,)``.
        after: those of the changed picture, from a pass of its own over `model_input`.
        reading: what the scores are.
    """

    model_input: ModelInput = field(repr=False)
    original: Pixels = field(repr=False)
    picture: Pixels = field(repr=False)
    target: int
    bound: int
    found: bool
    passes: int
    before: Tensor = field(repr=False)
    after: Tensor = field(repr=False)
    reading: Reading

    def text(self, scores: Tensor) -> str:
        """Write the target's value among the scores of a pass."""
        return self.reading.text(float(self.reading.values(scores)[self.target]))

    @property
    def difference(self) -> NDArray[np.int16]:
        """What was added to each number, in levels of 255, ``(H, W, 3)``."""
        added: NDArray[np.int16] = self.picture.astype(np.int16) - self.original
        return added

    @property
    def moved(self) -> int:
        """The most that any number moved, in levels of 255; never more than `bound`."""
        return int(np.abs(self.difference).max())


def smallest_bound(attempt: Attempt, most: int) -> tuple[Pixels, int, bool]:
    """Return the picture of the smallest bound that does, that bound, and whether one was found.

    It is doubled from 1 level up to `most`, and then halved in on.
    """
    bound, failed = 1, 0
    picture, found = attempt(bound)
    while not found and bound < most:
        bound, failed = min(2 * bound, most), bound
        picture, found = attempt(bound)
    while found and bound - failed > 1:
        middle = (bound + failed) // 2
        tried, there = attempt(middle)
        if there:
            bound, picture = middle, tried
        else:
            failed = middle
    return picture, bound, found


def smallest_change(
    model: Model,
    model_input: ModelInput,
    target: int,
    *,
    steps: int = 40,
    most: int = MOST,
    sure: float = 0,
    progress: Progress = ignore,
    partial: Callable[[PictureChange], object] = lambda _change: None,
) -> PictureChange:
    """Change a picture as little as was found to do until the network takes it for a class.

    Projected gradient descent on the class's loss (Madry et al., "Towards Deep Learning Models
    Resistant to Adversarial Attacks", 2018), within the smallest bound that was found to do, in
    whole levels of 255. The answer told is that of the picture as a PNG file, read back.

    Args:
        model: the model.
        model_input: the input, with its picture of ``(H, W, 3)``.
        target: the class's number, which must not be the likeliest already.
        steps: passes there and back within each bound, at most.
        most: the largest bound, in levels of 255.
        sure: how likely the class has to be, 0…1; it has to be the likeliest anyway.
        progress: called with the share done after every pass, 0…1; what it raises ends the run.
        partial: called with what there is after each pass.

    Raises:
        HookVizError: the model makes its input by a function of its own, or takes the picture for
            that class as it is.
        ModelError: it puts out no class scores, or can't be differentiated.

    >>> model = hookviz.load_model("squeezenet")
    >>> model_input = hookviz.prepare_input(model, "assets/samples/coffee.jpg")
    >>> change = smallest_change(model, model_input, model.categories.index("toaster"))
    >>> change.found, change.bound, change.moved  # no number moved by more than 1 of 255
    (True, 1, 1)
    """
    _, original = check_repaints(model, model_input)
    answer = _answer(model, model_input)
    before, reading = answer.values[0].float().cpu(), answer.reading
    if _is_there(reading, before, target, sure):
        name = model.label(target)
        raise HookVizError(
            say(
                "{model} takes this picture for {label} as it is: there is nothing to change. "
                "Choose another class.",
                model=model.title,
                label=name,
            )
        )
    reporter, tried, passes = ProgressReporter(progress), -1, 0

    def attempt(bound: int) -> tuple[Pixels, bool]:
        nonlocal tried
        tried += 1
        done = 0

        def look(shown: Pixels) -> tuple[NDArray[np.int16], bool]:
            nonlocal done, passes
            current = repainted(model, model_input, shown)
            signs, scores = _rising_signs(model, current, target, reporter)
            there = _is_there(reading, scores, target, sure)
            done, passes = done + 1, passes + 1
            # The number of bounds to try is unknown: each counts as half of the rest.
            reporter.share(1 - 0.5 ** (tried + done / (steps + 1)))
            scored = (before, scores, reading)
            partial(PictureChange(current, original, shown, target, bound, there, passes, *scored))
            return signs, there

        return descended(original, bound, steps, look)

    picture, bound, found = smallest_bound(attempt, most)
    changed = read_back(model, picture)
    after = class_scores_of(model, changed)
    found = found and _is_there(reading, after, target, sure)
    return PictureChange(
        changed, original, picture, target, bound, found, passes, before, after, reading
    )


def class_to_make(model: Model, scores: Tensor) -> int:
    """Return a toaster's number; the second likeliest class where there is none, or it is one."""
    first = int(scores.argmax())
    found = model.categories.index(TOASTER) if TOASTER in model.categories else first
    return int(scores.topk(min(2, len(scores))).indices[-1]) if found == first else found


def read_back(model: Model, picture: Pixels) -> ModelInput:
    """Return the input that a picture makes, ``(H, W, 3)``, when its PNG file is opened whole."""
    return prepare_input(model, encode_png(picture), size=min(picture.shape[:2]), whole=True)


def class_scores_of(model: Model, model_input: ModelInput) -> Tensor:
    """Return the class scores of an input before the softmax, ``(classes,)``, in a pass of its own.

    Raises:
        ModelError: the network puts out none.
    """
    return _answer(model, model_input).values[0].float().cpu()


def _answer(model: Model, model_input: ModelInput) -> Scores:
    with private_replica(model) as replica:
        return class_scores(model, replica, model_input.tensor)


def _is_there(reading: Reading, scores: Tensor, target: int, sure: float) -> bool:
    """Return whether a class is the highest, and as likely as it has to be if that is known."""
    is_sure = not reading.is_share or float(reading.values(scores)[target]) >= sure
    return int(scores.argmax()) == target and is_sure


Search = Callable[..., PictureChange]
"""`smallest_change`, with the steps and the largest bound that are wanted."""


@dataclass(frozen=True, eq=False, slots=True)
class OtherAnswer:
    """What another network says, and what flips its own answer.

    Attributes:
        model: the other network.
        before: its class scores for the picture before, ahead of the softmax, ``(classes,)``.
        after: those for the picture that was changed for the first network.
        own: the smallest change that was found for this one.
    """

    model: Model = field(repr=False)
    before: Tensor = field(repr=False)
    after: Tensor = field(repr=False)
    own: PictureChange


def other_names(model: Model) -> tuple[str, ...]:
    """Return the names of the networks in the box without that of `model`."""
    return tuple(name for name in BUNDLED if name != model.name)


def other_answer(
    name: str, change: PictureChange, search: Search, reporter: ProgressReporter
) -> OtherAnswer | None:
    """Return what the network called `name` says of both pictures, and its own smallest change.

    It gets both pictures as files, which it scales and crops as it does any other. None where this
    machine has no room for the network.
    """
    try:
        model = load_model(name)
    except HookVizError:
        return None
    before, after = (
        prepare_input(model, encode_png(each)) for each in (change.original, change.picture)
    )
    scores = class_scores_of(model, before)
    own = search(model, before, class_to_make(model, scores), progress=reporter.within)
    return OtherAnswer(model, scores, class_scores_of(model, after), own)
