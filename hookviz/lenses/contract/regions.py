"""Ask a lens about a part of an answer: a region of the picture, a box, or likeness to an image.

A `Region` is a part of the picture that a network sees, as text. `restrict_to_region` and
`compare_to` return a `Subject` whose classes are about that part alone.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hookviz.capturing import engine
from hookviz.drawing.panels import TextPanel
from hookviz.errors import ModelError, SettingError, shorten
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import ClassChoice, Parameter
from hookviz.outputs.answer import BOXES, EMBEDDING, KINDS, MAPS, NUMBER, Output
from hookviz.outputs.reading import picked, within
from hookviz.types import ModelInput
from hookviz.wording import times

Floats = NDArray[np.float64]
_NUMBER = r"(\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})"
_RECTANGLE = re.compile("rect:" + ",".join([_NUMBER] * 4), re.ASCII)
_BRUSH = re.compile(r"brush:(\d{1,7})x(\d{1,7}):(\d{1,8}(?:\.\d{1,8})*)", re.ASCII)
_MOST_CELLS = 1 << 22  # of a mask: a link may ask for any
_MOST_LETTERS = 8 * _MOST_CELLS
_WANTED = mark(
    'a region such as "rect:0.25,0.25,0.75,0.75" (left, top, right, bottom as '
    "shares of the picture), or a mask (H, W) of truth values"
)


class Region(str):
    """Region as text, which can be laid over the cells of a map.

    ``rect:LEFT,TOP,RIGHT,BOTTOM`` in shares of the input's picture, 0…1 from its top left corner;
    or ``brush:COLUMNSxROWS:RUNS`` of a mask over all of the picture, row by row: how many of its
    cells are not marked, how many then are, and so on in turn, with dots between. What is left at
    the end is not marked.

    >>> from hookviz.lenses.contract.regions import Region
    >>> Region("rect:0,0,0.5,1").cover(1, 4)  # (rows, columns)
    array([[1., 1., 0., 0.]])
    >>> Region("brush:2x2:1.1").cover(1, 2)  # the upper right quarter
    array([[0. , 0.5]])
    """

    __slots__ = ()

    def cover(self, rows: int, columns: int) -> Floats:
        """Return the share of each cell's area that is marked, 0…1, ``(rows, columns)``.

        The cells are those of a map over the whole picture, all of one size.

        Raises:
            SettingError: the text is no region.
        """
        return covered(*self._marks(), rows, columns)

    @property
    def area(self) -> float:
        """Share of the picture that is marked, 0…1."""
        return float(self.cover(1, 1)[0, 0])

    def _marks(self) -> tuple[Floats, Floats, Floats]:
        """Return what is marked, 0 or 1, ``(n, m)``, and the edges of its rows and columns."""
        if match := _RECTANGLE.fullmatch(self):
            if max(map(float, match.groups())) <= 1:
                return rectangle_marks(self)
        elif match := _BRUSH.fullmatch(self[:_MOST_LETTERS]):
            cells, runs = int(match[1]) * int(match[2]), map(int, match[3].split("."))
            if 0 < cells <= _MOST_CELLS and sum(runs) <= cells:
                return brush_marks(match[0])
        raise SettingError(
            say("{value} is not {expected}.", value=shorten(repr(str(self))), expected=say(_WANTED))
        )


def rectangle_marks(text: str) -> tuple[Floats, Floats, Floats]:
    """Return 1 for what is marked, ``(1, 1)``, and the edges of its rows and of its columns."""
    left, top, right, bottom = map(float, text.removeprefix("rect:").split(","))
    return np.ones((1, 1)), np.sort((top, bottom)), np.sort((left, right))


def brush_marks(text: str) -> tuple[Floats, Floats, Floats]:
    """Return which cells are marked, 0 or 1, and the edges of their rows and of their columns."""
    size, written = text.removeprefix("brush:").split(":")
    columns, rows = map(int, size.split("x"))
    runs = [int(run) for run in written.split(".")]
    marks = np.zeros(rows * columns)
    marks[: sum(runs)] = np.repeat(np.arange(len(runs)) % 2, runs)
    edges = np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)
    return marks.reshape(rows, columns), *edges


def covered(marks: Floats, down: Floats, across: Floats, rows: int, columns: int) -> Floats:
    """Return the share of each cell of a map that is marked, 0…1, ``(rows, columns)``."""
    shares = overlap(down, rows) @ marks @ overlap(across, columns).T
    return np.clip(shares, 0, 1)  # a sum of many shares may end a rounding above 1


def overlap(edges: Floats, count: int) -> Floats:
    """Return the share of each of `count` equal parts of 0…1 between each two edges."""
    parts = np.linspace(0, 1, count + 1)
    low = np.maximum(parts[:-1, None], edges[None, :-1])
    high = np.minimum(parts[1:, None], edges[None, 1:])
    shares: Floats = np.clip(high - low, 0, None) * count
    return shares


NOTHING = Region("rect:0,0,0,0")
"""The region that marks nothing."""


def region_of(mask: NDArray[np.bool_]) -> Region:
    """Return the region that a mask over all of the picture, ``(H, W)``, marks."""
    flat = np.concatenate([[False], mask.reshape(-1), [False]])  # the first run is of unmarked ones
    ends = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff(np.concatenate([[0], ends])) if len(ends) else np.zeros(1, int)
    return Region(f"brush:{mask.shape[1]}x{mask.shape[0]}:{'.'.join(map(str, runs))}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RegionChoice(Parameter):
    """Choice of a region as a `Region`, its text, or a mask ``(H, W)`` over all of the picture.

    Attributes:
        default: the text of what is marked where nothing is chosen.
    """

    name: str = "region"
    label: str = mark("Region")
    default: str = "rect:0.3,0.3,0.7,0.7"

    def resolve(self, value: Any, subject: Subject) -> Region:  # noqa: ARG002
        """Return the region.

        Raises:
            SettingError: the value is no region, or marks nothing.
        """
        region = self._read(self.default if value is None else value)
        if not region.area > 0:
            raise SettingError(
                say(
                    "{name}={region} marks nothing of the picture. Mark some of it, for example "
                    "{example}.",
                    name=self.name,
                    region=shorten(repr(str(region))),
                    example=self.default,
                )
            )
        return region

    def _read(self, value: Any) -> Region:
        if isinstance(value, Tensor):
            value = value.cpu().numpy()
        if isinstance(value, np.ndarray):
            if value.dtype == np.bool_ and value.ndim == 2 and 0 < value.size <= _MOST_CELLS:
                return region_of(value)
            kind = say("an array of {dtype}, {shape}", dtype=value.dtype, shape=value.shape)
            raise SettingError(
                say(
                    "{name} is {kind}, not {expected} of at most {limit:,}.",
                    name=self.name,
                    kind=kind,
                    expected=say(_WANTED),
                    limit=_MOST_CELLS,
                )
            )
        if not isinstance(value, str):
            raise self.refuse(value, say(_WANTED))
        region = Region(value.strip())
        try:
            region.area  # noqa: B018 - reads it
        except SettingError:
            raise self.refuse(value, say(_WANTED)) from None
        return region


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
    """Return the kind of a network's answer, one of `KINDS`; empty where it is unknown."""
    answer = subject.answered.answer
    return "" if answer is None else answer.reading.kind


def restrict_to_region(subject: Subject, value: Any) -> tuple[Subject, str]:
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


def compare_to(subject: Subject, other: ModelInput | Tensor) -> Subject:
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
