"""Find the smallest change of a picture that makes a network take it for another class.

The bound grows from one level of 255 by doubling until projected gradient descent finds a change
within it, and is then halved in on between the last that failed and the first that did not. It is
the smallest that was found: that a search fails is no proof that there is none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.inputs import prepare
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError
from hookviz.explaining.adversarial import descended, rising_signs
from hookviz.explaining.scoring import class_scores
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.saying import say
from hookviz.outputs.answer import Reading, Scores
from hookviz.types import Model, ModelInput, Pixels, Progress, ignore

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
    >>> model_input = hookviz.prepare(model, "assets/samples/coffee.jpg")
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
            signs, scores = rising_signs(model, current, target, reporter)
            there = _is_there(reading, scores, target, sure)
            done, passes = done + 1, passes + 1
            # How many bounds will be tried nobody knows: each is half of what is left.
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
    """Return a toaster's number; the second likeliest class where there is none, or it is one.

    Args:
        model: whose classes they are.
        scores: ``(classes,)``.
    """
    first = int(scores.argmax())
    found = model.categories.index(TOASTER) if TOASTER in model.categories else first
    return int(scores.topk(min(2, len(scores))).indices[-1]) if found == first else found


def read_back(model: Model, picture: Pixels) -> ModelInput:
    """Return the input that a picture makes, ``(H, W, 3)``, when its PNG file is opened whole."""
    return prepare(model, encode_png(picture), size=min(picture.shape[:2]), whole=True)


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
