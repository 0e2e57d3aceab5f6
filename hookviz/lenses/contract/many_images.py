"""Run a lens, or compute something, on many images.

`over_images` is for a lens that takes more images beside its own. `stream_lens` runs any lens on
image after image, and keeps the results in memory or as files.
"""

import hashlib
import os
import pickle
import re
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from torch import Tensor, nn

from hookviz.capturing.batch_images import Images, image_count, name_images, named
from hookviz.capturing.inputs import open_source, prepare_input
from hookviz.drawing.panels import TextPanel
from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import NUMBERS, LensResult, Subject, save_result
from hookviz.lenses.contract.running import check_names, find_lens, run_lens
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Model, ModelInput, Preprocess, Progress, ignore

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
            model_input = prepare_input(
                subject.model, prepared
            )  # says why where it could not be before
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
            own = {} if isinstance(image, Tensor | ModelInput) else options
            inputs[name] = prepare_input(subject.model, image, **own)
        except HookVizError:
            inputs[name] = image
    reporter.step()
    return inputs


def _own_options(subject: Subject) -> dict[str, Any]:
    """Return the `prepare_input` options that make the subject's own input of its image."""
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
            model_input = prepare_input(subject.model, subject.image, **options)
        except HookVizError:
            continue
        if model_input.digest == subject.model_input.digest:
            return options
    square = len(subject.shape) == 3 and subject.shape[1] == subject.shape[2]
    return {"size": side} if square and side >= subject.model.min_size else {}


_KEY = "hookviz-key.txt"
_LONGEST = 200  # bytes of a folder's name; most systems take 255


@overload
def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: None = None,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> Generator[tuple[str, LensResult | HookVizError], None, None]: ...


@overload
def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: str | os.PathLike[str],
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> dict[str, Path | HookVizError]: ...


def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: str | os.PathLike[str] | None = None,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> Generator[tuple[str, LensResult | HookVizError], None, None] | dict[str, Path | HookVizError]:
    """Look at each of several images through a lens, with as many in memory as you keep.

    Without `to` you get an iterator of pairs: each image's name with its `LensResult`, or with a
    `HookVizError` where the image can't be read or the lens can't work on it.

    With `to` each result goes into a folder of its own in that folder, its panels as files and its
    numbers as ``values.npz``, and you get these folders by the images' names, or why there is none.
    A result that is there from the same input, network and settings is not computed again: a run
    that was stopped goes on. Of a lambda as target, and of a network of several inputs, nobody can
    tell: these are computed again.

    Args:
        slug: one of `list_lenses`.
        model: from `load_model` or `wrap`, or a module of one's own.
        images: what `capture` takes for several images, such as a folder or a loader; as a mapping
            where they have names.
        to: a folder for the results, which is made.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done where the number of images is known; what it raises
            ends the run.
        parameters: of `run_lens`; layers, classes and such are chosen for each image by itself.

    Raises:
        UnknownNameError: there is no such lens.
        SettingError: a parameter is not one of the lens's, or has a value that means nothing.
        OSError: the folder can't be written.

    >>> model = hookviz.load_model("shapesnet")
    >>> paths = ["assets/samples/star.jpg", "assets/samples/heart.jpg"]
    >>> for name, result in hookviz.stream_lens("grad-cam", model, paths, layer="stage2"):
    ...     print(name, result.values["map"].shape)
    star.jpg (16, 16)
    heart.jpg (16, 16)
    """
    check_names(find_lens(slug), parameters)
    model = as_model(model)
    asked = {"size": size, "whole": whole, **parameters}
    if to is None:
        return _results(slug, model, images, asked, progress)
    folder, keys = path_of(to), dict[str, str]()

    def is_there(name: str, source: Any) -> bool:
        model_input = prepare_input(model, source, size=size, whole=whole)
        keys[name] = _key(slug, model, model_input, parameters)
        numbers, key = (folder / _as_folder(name) / each for each in (NUMBERS, _KEY))
        return numbers.exists() and key.exists() and key.read_text() == keys[name] != ""

    written: dict[str, Path | HookVizError] = {}
    for name, result in _results(slug, model, images, asked, progress, is_there=is_there):
        place = folder / _as_folder(name)
        if isinstance(result, LensResult):
            _replace(place, keys[name], result, model)
        written[name] = result if isinstance(result, HookVizError) else place
    return written


def _results(
    slug: str,
    model: Model,
    images: Images,
    asked: Mapping[str, Any],
    progress: Progress,
    *,
    is_there: Callable[[str, Any], bool] = lambda _name, _source: False,
) -> Generator[tuple[str, Any], None, None]:
    """Yield each image's name with its result, or why there is none; None where `is_there`.

    A mistake of the call is raised, as long as no image has shown that it is none.
    """
    total = image_count(model, images)
    reporter = ProgressReporter(progress if total else ignore, total or 1)
    within = reporter.within if total else ignore
    fits = False
    for key, image in name_images(model, images):
        name, found = str(key), None
        try:
            source = open_source(model, image)
            if not is_there(name, source):
                found = run_lens(slug, model, source, progress=within, **asked)
                fits = True
        except HookVizError as error:
            is_mistake = isinstance(error, SettingError | UnknownNameError) and not fits
            if is_mistake or reporter.was_ended_by(error):
                raise
            yield name, error
        else:
            yield name, found
        if total:
            reporter.step()


def _replace(place: Path, key: str, result: LensResult, model: Model) -> None:
    """Write a result into its folder, in place of another one; its numbers come last."""
    place.mkdir(parents=True, exist_ok=True)
    (place / NUMBERS).unlink(missing_ok=True)
    for stale in place.glob(f"[0-9]*-{result.lens}.*"):
        stale.unlink()
    (place / _KEY).write_text(key)
    save_result(result, place, model)


def _key(slug: str, model: Model, model_input: ModelInput, parameters: Mapping[str, Any]) -> str:
    """Return a digest of input, network and settings; empty where something has no bytes."""
    if model.example is not None:
        return ""
    output = model.output
    parts: dict[str, Any] = {"train": model.train, **parameters}
    parts |= {"output kind": output.kind, "output part": output.part, "output unit": output.unit}
    found = hashlib.sha256(f"{slug} {model.digest} {model_input.digest}".encode())
    for name, value in sorted(parts.items()):
        bare = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        try:
            found.update(name.encode() + pickle.dumps(bare))
        except (pickle.PicklingError, AttributeError, TypeError):
            return ""
    return found.hexdigest()


def _as_folder(name: str) -> str:
    """Return a folder's name for an image's, which may have a ``/`` in it, be ``..`` or long."""

    def percent_encoded(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())

    escaped = re.sub(r"""[%/\\:*?"<>|\x00-\x1f]|^[. ]+$""", percent_encoded, name) or "%"
    if len(escaped.encode()) <= _LONGEST:
        return escaped
    return f"{escaped[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
