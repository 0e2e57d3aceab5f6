"""Find every lens and run one, whole or as a small preview.

A lens is a module in `hookviz.lenses` with a ``LENS``.
"""

import io
import pkgutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from hookviz.capturing import inputs
from hookviz.capturing.cache import ByteCache
from hookviz.drawing.charts import Chart, chart_thumbnail
from hookviz.drawing.panels import GridPanel, ImagePanel, MapsPanel, Panel, TablePanel
from hookviz.drawing.pictures import encode_jpeg, encode_png, resize
from hookviz.errors import (
    HookVizError,
    SettingError,
    UnknownNameError,
    nearest_names,
    one_of,
)
from hookviz.hooking.device import with_numbers
from hookviz.language.saying import joined, say
from hookviz.lenses.contract.beside_random import run_beside_random
from hookviz.lenses.contract.lens import GROUPS, Lens, LensOutput, LensResult, Subject
from hookviz.lenses.contract.parameters import ClassChoice
from hookviz.lenses.contract.regions import (
    LIKE,
    REGION,
    compare_to,
    part_panel,
    parts_of_answer,
    restrict_to_region,
    vector_in,
)
from hookviz.models.derived_models import with_edits
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import NUMBER, Output
from hookviz.settings import ASSETS
from hookviz.types import InputImage, Model, Pixels, Progress, ignore
from hookviz.wording import number, times

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
            parameters[LIKE] = inputs.prepare_input(model, other, size=size, whole=whole)
        else:
            parameters[LIKE] = vector
    return Subject(
        model=model,
        model_input=inputs.prepare_input(model, source, size=size, whole=whole),
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
        subject, part, chosen = _resolve_parameters(lens, subject, parameters)

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
    """Return a lens's subject, and the settings that count, defaults filled in.

    Args:
        slug: of the lens.
        model: as for `run_lens`.
        image: as for `run_lens`.
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
    run_options = {key: options[key] for key in options.keys() & around}
    subject = _subject_of(model, image, parameters, **run_options)
    subject, part, values = _resolve_parameters(lens, subject, parameters)
    return subject, {key: values[key] for key in ("target", *settings) if key in values} | part


def _resolve_parameters(
    lens: Lens, subject: Subject, parameters: Mapping[str, Any]
) -> tuple[Subject, dict[str, Any], dict[str, Any]]:
    """Resolve a lens's parameters: the subject of a part of its answer, that part, and values.

    Raises:
        SettingError: a parameter has a value that means nothing.
        HookVizError: the input or the network has none of what the lens asks for, such as classes.
    """
    part = {
        name: parameters[name] for name in parts_of_answer(lens) if parameters.get(name) is not None
    }
    if REGION in part:
        subject, part[REGION] = restrict_to_region(subject, part[REGION])
    if LIKE in part:
        subject = compare_to(subject, part[LIKE])
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


WIDTH, HEIGHT = 264, 150
"""Pixels of a small picture."""
FOLDER = ASSETS / "lenses"
"""Where `scripts.make_lens_pictures` puts small pictures of what lenses answer on a sample."""

_ROWS, _COLUMNS = 5, 3  # of a table
_TILES = 4  # from one side of a grid to the other


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    """A lens's answer, small.

    Attributes:
        picture: a PNG or JPEG file; empty where `rows` say it.
        rows: the first rows of a table, its headings first.
        of_sample: what the answer is about where it is not the image that is looked at; else empty.
    """

    picture: bytes = b""
    rows: tuple[tuple[str, ...], ...] = ()
    of_sample: str = ""


def small_answer(lens: Lens, subject: Subject) -> SmallAnswer:
    """Run a lens by its `Preview`, and return its answer.

    Raises:
        HookVizError: the lens can't work on this subject.
    """
    return answer_of(lens, look(lens, subject, dict(lens.preview.settings)).panels)


def answer_of(lens: Lens, panels: Sequence[Panel]) -> SmallAnswer:
    """Return the panel that a lens's `Preview` names, small.

    Raises:
        HookVizError: no panel can be shown small.
    """
    drawn = [picture for picture in map(_picture, panels) if picture is not None]
    if drawn:
        picture = drawn[min(lens.preview.panel, len(drawn) - 1)]
        has_alpha = picture.shape[2] == 4
        return SmallAnswer(encode_png(picture) if has_alpha else encode_jpeg(picture, quality=80))
    table = next((panel for panel in panels if isinstance(panel, TablePanel)), None)
    if table is None:
        raise HookVizError(say("{lens} shows no picture.", lens=say(lens.title)))
    rows = (tuple(map(say, table.columns)), *table.rows)
    return SmallAnswer(rows=tuple(tuple(map(_text, row[:_COLUMNS])) for row in rows[:_ROWS]))


def answer_of_sample(lens: Lens) -> SmallAnswer:
    """Return what the lens answers on a sample, as it was kept; empty where nothing was."""
    file = FOLDER / f"{lens.slug}.jpg"
    return SmallAnswer(file.read_bytes() if file.exists() else b"", of_sample=say("on a sample"))


def _picture(panel: Panel) -> Pixels | None:
    match panel:
        case ImagePanel():
            return _fit(panel.picture)
        case Chart():
            return chart_thumbnail(panel, WIDTH, HEIGHT)
        case MapsPanel():
            return _fit(panel.sheet(HEIGHT // 3, columns=3))
        case GridPanel():
            with Image.open(io.BytesIO(panel.grid.png())) as picture:
                return _fit(_corner(np.asarray(picture.convert("RGB")), panel))
    return None


def _corner(picture: Pixels, panel: GridPanel) -> Pixels:
    """Cut the first tiles out of a grid, so few that they are seen."""
    columns = max(1, panel.grid.geometry.columns)
    tile = -(-picture.shape[1] // columns)
    width = min(picture.shape[1], _TILES * tile)
    return picture[: round(width * HEIGHT / WIDTH), :width]


def _fit(picture: Pixels) -> Pixels:
    """Resize a picture to the small one's width or height, whichever is reached first."""
    height, width = picture.shape[:2]
    scale = min(WIDTH / width, HEIGHT / height)
    return resize(picture, (max(1, round(height * scale)), max(1, round(width * scale))))


def _text(cell: str | float) -> str:
    return cell if isinstance(cell, str) else number(cell)
