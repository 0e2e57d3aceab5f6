"""Make inputs of more images as of the one looked at, and compute something of each."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import Tensor

from hookviz.capturing.batch_images import named
from hookviz.capturing.inputs import prepare
from hookviz.drawing.panels import TextPanel
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Subject
from hookviz.types import ModelInput, Preprocess, Progress

Result = TypeVar("Result")


def over_images(
    subject: Subject,
    images: tuple[Any, ...],
    compute: Callable[[ModelInput, Any, Progress], Result],
    most: int | None = None,
) -> tuple[dict[str, Result], dict[str, HookVizError]]:
    """Compute something of the image looked at and of others, and return why some are left out.

    Results and reasons are by the images' names. An input that was there already is not taken
    again.

    Args:
        subject: whose image comes first, and whose progress is told.
        images: the others.
        compute: called with the input, the image, and whom to tell of progress.
        most: how many inputs are taken at most.

    Raises:
        SettingError: whatever image `compute` raises it for.
        HookVizError: there is no result for the image looked at.
    """
    first = subject.image if subject.image is not None else subject.model_input
    by_name = named([first, *images])
    if most is not None:  # one more: the image looked at may be among the others
        by_name = dict(list(by_name.items())[: most + 1])
    reporter = ProgressReporter(subject.progress, 1 + len(by_name))
    results: dict[str, Result] = {}
    reasons: dict[str, HookVizError] = {}
    digests: set[str] = set()
    for name, prepared in prepared_alike(subject, by_name, reporter).items():
        try:
            model_input = prepare(subject.model, prepared)  # says why where it could not be before
            if model_input.digest not in digests and len(digests) != most:
                results[name] = compute(model_input, by_name[name], reporter.within)
            digests.add(model_input.digest)
        except SettingError:
            raise
        except HookVizError as error:
            if reporter.was_ended_by(error) or not results:
                raise
            reasons[name] = error
        reporter.step()
    return results, reasons


def left_out(reasons: Mapping[str, HookVizError | str]) -> list[TextPanel]:
    """Return a panel for each image that is left out, by its name, with the reason."""
    return [
        TextPanel(say("{name} is left out: {reason}", name=shorten(name), reason=reason), "bad")
        for name, reason in reasons.items()
    ]


def prepared_alike(
    subject: Subject, images: Mapping[str, Any], reporter: ProgressReporter
) -> dict[str, Any]:
    """Return the images as inputs, the subject's own first, in one step of `reporter`.

    One that can't be made an input stays as it was given: what is done with it then tells why.
    """
    options = _own_options(subject)
    inputs: dict[str, Any] = {}
    for position, (name, image) in enumerate(images.items()):
        reporter.within(position / len(images))
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


def _own_options(subject: Subject) -> dict[str, Any]:
    """Return the `prepare` options that make the subject's own input of its image."""
    steps = subject.model.preprocess
    if not isinstance(steps, Preprocess):
        return {}
    side = min(subject.shape[-2:])
    candidates: list[dict[str, Any]] = [
        {},
        {"size": side},
        {"whole": True},
        {"size": side, "whole": True},
    ]
    for options in candidates if subject.image is not None else []:
        try:
            model_input = prepare(subject.model, subject.image, **options)
        except HookVizError:
            continue
        if model_input.digest == subject.model_input.digest:
            return options
    square = len(subject.shape) == 3 and subject.shape[1] == subject.shape[2]
    return {"size": side} if square and side >= subject.model.min_size else {}
