"""Find every lens and run one: a module in `hookviz.lenses` has a ``LENS``."""

import pkgutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import nn

from hookviz.capturing import inputs
from hookviz.capturing.cache import ByteCache
from hookviz.errors import (
    HookVizError,
    SettingError,
    UnknownNameError,
    nearest_names,
    one_of,
)
from hookviz.hooking.device import with_numbers
from hookviz.language.saying import joined, say
from hookviz.lenses.contract.asked_part import (
    LIKE,
    REGION,
    asked_like,
    asked_within,
    part_panel,
    parts_of_answer,
    vector_in,
)
from hookviz.lenses.contract.beside_random import run_beside_random
from hookviz.lenses.contract.lens import GROUPS, Lens, LensOutput, LensResult, Subject
from hookviz.lenses.contract.parameters import ClassChoice
from hookviz.models.derived_models import with_edits
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import NUMBER, Output
from hookviz.types import InputImage, Model, Progress, ignore
from hookviz.wording import times

QUESTION_WORDS = ("Where", "Who", "Which", "What", "How", "Is")
"""How a lens's question begins, in the order in which those of a group are listed."""


@cache
def list_lenses() -> tuple[Lens, ...]:
    """List every lens by its group (`hookviz.lenses.contract.lens.GROUPS`), and its question.

    >>> [(lens.group, lens.question, lens.slug) for lens in hookviz.list_lenses()][0]
    ('What it sees', 'Where else does the channel respond?', 'across-images')
    """
    folder = import_module("hookviz.lenses")
    names = [info.name for info in pkgutil.iter_modules(folder.__path__) if not info.ispkg]
    lenses = [import_module(f"{folder.__name__}.{name}").LENS for name in names]
    return tuple(sorted(lenses, key=_order))


def _order(lens: Lens) -> tuple[int, int, str]:
    word = lens.question.partition(" ")[0]
    return GROUPS.index(lens.group), QUESTION_WORDS.index(word), lens.question


def find_lens(slug: str) -> Lens:
    """Return the lens of that slug.

    Raises:
        UnknownNameError: there is none.
    """
    known = {lens.slug: lens for lens in list_lenses()}
    if slug not in known:
        raise UnknownNameError(say("lens"), slug, known)
    return known[slug]


def run_lens(
    slug: str,
    model: Model | nn.Module,
    image: Any,
    *,
    size: int | None = None,
    whole: bool = False,
    cache: ByteCache | None = None,
    progress: Progress = ignore,
    partial: Callable[[LensResult], object] | None = None,
    edits: Mapping[Any, Any] | None = None,
    **parameters: Any,
) -> LensResult:
    """Look at a model and an image through a lens.

    Its hooks are gone afterwards, on every way out.

    Args:
        slug: one of `list_lenses`.
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `capture` takes.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        cache: a session's cache, used for captures.
        progress: called with the share done, 0…1; what it raises ends the lens.
        partial: given what a lens that grows has so far, in the shape of what is returned; what it
            raises ends the lens.
        edits: what each of its passes changes, as of `hookviz.edit`.
        parameters: what the lens declares; what is left out has its default. ``target=`` takes a
            class, or any function of what the network puts out for one image, batch included, that
            returns one number: ``target=lambda out: out[:, 2].mean()``. Beside a class ``region=``
            asks about a part of maps, or about the box that overlaps it the most: as a `Region`,
            ``"rect:0.2,0.2,0.5,0.5"``, or a mask ``(H, W)``; and ``like=``, of an embedding, about
            its cosine similarity to that of another image, or to a vector, as a text's of CLIP.

    Raises:
        UnknownNameError: there is no such lens.
        SettingError: a parameter is not one of the lens's, or has a value that means nothing.
        HookVizError: the lens can't work on this model, layer or image; it says on which it can.

    >>> model = hookviz.load_model("shapesnet")
    >>> result = hookviz.run_lens("grad-cam", model, "assets/samples/star.jpg", target="star")
    >>> result.values["map"].shape  # (H, W) of the layer
    (8, 8)
    >>> [type(panel).__name__ for panel in result.panels][1:3]
    ['TextPanel', 'OverlayPanel']
    """
    lens = find_lens(slug)
    check_names(lens, parameters)
    started = time.perf_counter()
    model = with_edits(model, edits)
    subject = _subject_of(
        model, image, parameters, size=size, whole=whole, cache=cache, progress=progress
    )
    return look(lens, subject, parameters, started, partial)


def _subject_of(
    model: Model | nn.Module,
    image: Any,
    parameters: dict[str, Any],
    *,
    size: int | None = None,
    whole: bool = False,
    cache: ByteCache | None = None,
    progress: Progress = ignore,
) -> Subject:
    """Return the model and the image that a lens is to look at, as `run_lens` takes them.

    A target that is a function, and what an embedding is compared with, become part of the subject:
    `parameters` has a number and an input in their place afterwards.
    """
    model = as_model(model)
    source = inputs.open_source(model, image)
    target = parameters.get("target")
    if callable(target):
        model = replace(model, output=Output(NUMBER, target), categories=(say("the target"),))
        parameters["target"] = 0
    if parameters.get(LIKE) is not None:
        vector = vector_in(parameters[LIKE])
        if vector is None:
            other = inputs.open_source(model, parameters[LIKE])
            parameters[LIKE] = inputs.prepare(model, other, size=size, whole=whole)
        else:
            parameters[LIKE] = vector
    return Subject(
        model=model,
        model_input=inputs.prepare(model, source, size=size, whole=whole),
        image=source if isinstance(source, InputImage) else None,
        cache=cache,
        progress=progress,
    )


def check_names(lens: Lens, names: Iterable[str]) -> None:
    """Refuse names of parameters that the lens does not declare.

    Raises:
        SettingError: there is one; it says which is the nearest.
    """
    known = [parameter.name for parameter in lens.parameters]
    known += parts_of_answer(lens)
    for name in names:
        if name in known:
            continue
        near = nearest_names(name, known, 1)
        hint = (
            say(" Did you mean {name}?", name=near[0])
            if near
            else say(" It takes {parameters}.", parameters=joined(known) or say("none"))
        )
        raise SettingError(
            say(
                "The lens {slug} has no parameter {name!r}.{hint}",
                slug=lens.slug,
                name=name,
                hint=hint,
            )
        )


@with_numbers
def look(
    lens: Lens,
    subject: Subject,
    parameters: dict[str, Any],
    started: float | None = None,
    partial: Callable[[LensResult], object] | None = None,
) -> LensResult:
    """Run a lens on a subject that is there already, as the page does.

    Raises:
        HookVizError: as `run_lens` does.
    """
    started = time.perf_counter() if started is None else started
    with torch.inference_mode(mode=False):  # the caller's; a lens may want gradients
        subject, part, chosen = _settled(lens, subject, parameters)

        def result(output: LensOutput) -> LensResult:
            panels, values = output
            if part:
                panels = (*panels[:1], part_panel(subject, chosen.get("target")), *panels[1:])
            took = time.perf_counter() - started
            return LensResult(lens.slug, panels, values, chosen | part, took)

        if partial is not None:
            subject = replace(subject, partial=lambda output: partial(result(output)))
        return result(run_beside_random(lens, subject, chosen))


def resolve_subject(
    slug: str,
    model: Model | nn.Module,
    image: Any,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[Subject, dict[str, Any]]:
    """Return what a lens would look at, and the settings that count, defaults filled in.

    Args:
        slug: of the lens.
        model: as `run_lens` takes it.
        image: likewise.
        settings: of the lens.
        options: a class, the part of the answer that is asked about, and options of `run_lens`.
    """
    lens = find_lens(slug)
    around = {"size", "whole", "progress"}
    declared = {each.name for each in lens.parameters}
    names = around | {"target"} & declared | set(parts_of_answer(lens))
    for name in options:
        one_of(say("option"), name, sorted(names))
    parameters = {**settings, **{key: options[key] for key in options.keys() - around}}
    given = {key: options[key] for key in options.keys() & around}
    subject = _subject_of(model, image, parameters, **given)
    subject, part, values = _settled(lens, subject, parameters)
    return subject, {key: values[key] for key in ("target", *settings) if key in values} | part


def _settled(
    lens: Lens, subject: Subject, parameters: Mapping[str, Any]
) -> tuple[Subject, dict[str, Any], dict[str, Any]]:
    """Return the subject asked about a part of its answer, that part, and the lens's settings.

    Raises:
        SettingError: a parameter has a value that means nothing.
        HookVizError: the input or the network has none of what the lens asks for, such as classes.
    """
    part = {
        name: parameters[name] for name in parts_of_answer(lens) if parameters.get(name) is not None
    }
    if REGION in part:
        subject, part[REGION] = asked_within(subject, part[REGION])
    if LIKE in part:
        subject = asked_like(subject, part[LIKE])
    if lens.of_images:
        _check_image(subject)
    # Classes first: where there are none, no layer helps.
    order = sorted(lens.parameters, key=lambda each: not isinstance(each, ClassChoice))
    values = {each.name: each.resolve(parameters.get(each.name), subject) for each in order}
    return subject, part, {each.name: values[each.name] for each in lens.parameters}


def _check_image(subject: Subject) -> None:
    """Refuse an input without pixels, for a lens of images.

    Raises:
        HookVizError: it is sound or a volume.
    """
    if len(subject.shape) != 3:
        raise HookVizError(
            say(
                "{model} takes {shape}, which has no pixels to weigh: this lens needs "
                "images, (C, H, W). The lenses saliency and integrated-gradients take any input.",
                model=subject.model.title,
                shape=times(subject.shape),
            )
        )
