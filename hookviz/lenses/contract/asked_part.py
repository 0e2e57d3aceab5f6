"""Ask a lens about a part of an answer in place of the whole: a region, a box, another image."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn import functional

from hookviz.capturing import engine
from hookviz.drawing.panels import TextPanel
from hookviz.errors import ModelError, SettingError, shorten
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import ClassChoice
from hookviz.lenses.contract.regions import RegionChoice
from hookviz.outputs.declaration import BOXES, EMBEDDING, KINDS, MAPS, NUMBER, Output
from hookviz.outputs.reading import picked
from hookviz.outputs.within import within
from hookviz.types import ModelInput
from hookviz.wording import times

REGION, LIKE = "region", "like"
_PARTS: Mapping[str, str] = {
    REGION: mark("Of maps the region, of boxes the one that overlaps it the most"),
    LIKE: mark("The other image that an embedding is compared with"),
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


def asked_like(subject: Subject, other: ModelInput) -> Subject:
    """Return the subject whose one number is the cosine similarity to another image's vector.

    Args:
        subject: whose network answers with an embedding.
        other: the other image.

    Raises:
        ModelError: the network's answer is no vector.
    """
    model, kind = subject.model, kind_of_answer(subject)
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
    vector = answer.scores

    def part(raw: Any) -> Tensor:
        rows = picked(model.output.part, raw).flatten(1)
        return functional.cosine_similarity(rows, vector.to(rows)[None])

    output = Output(NUMBER, part, token=f"{model.output.key} like {other.digest}")
    names = (say("similarity to the other image"),)
    return replace(subject, model=replace(model, output=output, categories=names))


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
