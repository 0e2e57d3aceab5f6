"""Make inputs of more images in the same way as of the one looked at."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hookviz.capturing.inputs import prepare
from hookviz.errors import HookVizError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.lenses.contract.lens import Subject
from hookviz.types import ModelInput, Preprocess


def prepared_alike(
    subject: Subject, listed: Mapping[str, Any], reporter: ProgressReporter
) -> dict[str, Any]:
    """Return the images as inputs, the subject's own first, in one step of `reporter`.

    One that can't be made an input stays as it was given: what is done with it then tells why.
    """
    options = _same_way(subject)
    inputs: dict[str, Any] = {}
    for position, (name, image) in enumerate(listed.items()):
        reporter.within(position / len(listed))
        if position == 0:
            inputs[name] = subject.model_input
            continue
        try:
            # a tensor is an input already, which nothing can make larger or smaller
            inputs[name] = prepare(subject.model, image, **({} if _is_input(image) else options))
        except HookVizError:
            inputs[name] = image
    reporter.step()
    return inputs


def _is_input(image: Any) -> bool:
    return isinstance(image, Tensor | ModelInput)


def _same_way(subject: Subject) -> dict[str, Any]:
    """Return the `prepare` options that make the subject's own input of its image."""
    steps = subject.model.preprocess
    if not isinstance(steps, Preprocess):
        return {}
    side = min(subject.shape[1:])
    ways: list[dict[str, Any]] = [
        {},
        {"size": side},
        {"whole": True},
        {"size": side, "whole": True},
    ]
    for way in ways if subject.image is not None else []:
        try:
            model_input = prepare(subject.model, subject.image, **way)
        except HookVizError:
            continue
        if model_input.digest == subject.model_input.digest:
            return way
    square = len(subject.shape) == 3 and subject.shape[1] == subject.shape[2]
    return {"size": side} if square and side >= subject.model.min_size else {}
