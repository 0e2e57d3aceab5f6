"""Ask a lens about a part of an answer in place of the whole: a region, a box, another image."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hookviz.capturing import engine
from hookviz.drawing.panels import TextPanel
from hookviz.errors import ModelError, SettingError, shorten
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import ClassChoice
from hookviz.lenses.contract.regions import RegionChoice
from hookviz.outputs.answer import BOXES, EMBEDDING, KINDS, MAPS, NUMBER, Output
from hookviz.outputs.reading import picked, within
from hookviz.types import ModelInput
from hookviz.wording import times

REGION, LIKE = "region", "like"
_PARTS: Mapping[str, str] = {
    REGION: mark("Of maps the region, of boxes the one that overlaps it the most"),
    LIKE: mark("The other image, or the vector, that an embedding is compared with"),
}
REGION_CHOICE = RegionChoice(name=REGION, label=mark("Ask about there"))


def parts_of_answer(lens: Lens) -> Mapping[str, str]:
    """Return the keywords, with words, by which a lens that asks about a class takes a part."""
    return _PARTS if any(isinstance(each, ClassChoice) for each in lens.parameters) else {}


def kind_of_answer(subject: Subject) -> str:
    """Return what a network answers, one of `KINDS`; empty where that is in doubt, or nothing."""
    answer = subject.answered.answer
    return "" if answer is None else answer.reading.kind


def asked_within(subject: Subject, value: Any) -> tuple[Subject, str]:
    """Return the subject whose classes are those within a region, and the region's text.

    Args:
        subject: whose network answers with maps or boxes.
        value: the region, as `Region` has it, or a mask ``(H, W)``.

    Raises:
        SettingError: it is no region, or the network answers with something else.
    """
    region, kind = REGION_CHOICE.resolve(value, subject), kind_of_answer(subject)
    if kind not in (MAPS, BOXES) or len(subject.shape) != 3:
        raise SettingError(
            say(
                "region={region} asks about a part of maps, or about one of several boxes, of an "
                "image, and {model} answers {shape} with {kind}. Leave it out.",
                region=shorten(repr(str(region))),
                model=subject.model.title,
                shape=times(subject.shape),
                kind=say(KINDS[kind]) if kind else say("scores"),
            )
        )
    model, (_, height, width) = subject.model, subject.shape
    stated = model.output if model.output.kind else replace(model.output, kind=kind)
    output = within(stated, region.cover, (height, width), len(model.categories), region)
    return replace(subject, model=replace(model, output=output)), str(region)


def vector_in(value: Any) -> Tensor | None:
    """Return a row of numbers, ``(D,)`` or ``(1, D)``, as ``(D,)``; None of what is an image."""
    if not isinstance(value, Tensor | np.ndarray):
        return None
    row = torch.as_tensor(value)
    is_row = row.ndim == 1 or (row.ndim == 2 and len(row) == 1 and row.is_floating_point())
    return row.detach().flatten().float() if is_row else None


def asked_like(subject: Subject, other: ModelInput | Tensor) -> Subject:
    """Return the subject whose one number is the cosine similarity to another vector.

    Args:
        subject: whose network answers with an embedding.
        other: another image, or a vector ``(D,)`` of the same space, as a text's of CLIP.

    Raises:
        ModelError: the network's answer is no vector.
        SettingError: the other vector has another length.
    """
    model, kind = subject.model, kind_of_answer(subject)
    if isinstance(other, Tensor):
        answer = subject.answered.answer  # which says how long the vector has to be
    else:
        answer = engine.capture(model, other, (), logits=True, cache=subject.cache).answer
    if answer is None or kind not in (EMBEDDING, ""):
        raise ModelError(
            say(
                "like= asks how near this image's vector is to another one's, and {model} answers "
                "with {kind}. Leave it out; wrap(network, output='embedding') says that it is one.",
                model=model.title,
                kind=say(KINDS[kind]) if kind else say("no row of numbers"),
            )
        )
    vector = other if isinstance(other, Tensor) else answer.scores
    if len(vector) != len(answer.scores):
        raise SettingError(
            say(
                "like= is a vector of {length:,} numbers, and {model} answers with {count:,}. Give "
                "one of the same space, or another image.",
                length=len(vector),
                model=model.title,
                count=len(answer.scores),
            )
        )

    def part(raw: Any) -> Tensor:
        rows = picked(model.output.part, raw).flatten(1)
        return functional.cosine_similarity(rows, vector.to(rows)[None])

    if isinstance(other, Tensor):
        name = say("similarity to the vector")
        digest = hashlib.sha256(vector.cpu().numpy().tobytes()).hexdigest()
    else:
        name, digest = say("similarity to the other image"), other.digest
    output = Output(NUMBER, part, token=f"{model.output.key} like {digest}")
    return replace(subject, model=replace(model, output=output, categories=(name,)))


def part_panel(subject: Subject, target: int | None) -> TextPanel:
    """Return the sentence that says which part of an answer was asked about."""
    number = subject.top_class if target is None else target
    text = {
        MAPS: mark("Asked about within the region alone: {label}, whose mean score is {score}."),
        BOXES: mark("Asked about the box that overlaps the region the most: {label}, {score}."),
        NUMBER: mark("Asked about the {label}, the cosine of the two vectors: {score}."),
    }[subject.model.output.kind]
    score = subject.answer.text(float(subject.answer.scores[number]))
    return TextPanel(say(text, label=subject.label(number), score=score))
