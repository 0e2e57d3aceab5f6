"""Declare what a lens is, one way of looking at a run, and what its run returns.

Every front end can offer a `Lens`. A `LensResult` has the panels of one run, and the numbers behind
them.
"""

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.drawing.panels import Panel, TextPanel
from hookviz.errors import ModelError
from hookviz.language.saying import mark
from hookviz.lenses.contract.parameters import Parameter
from hookviz.outputs.answer import Answer, no_classes
from hookviz.paths import write_whole
from hookviz.types import Capture, InputImage, LayerInfo, Model, ModelInput, Progress, ignore

NUMBERS = "values.npz"
"""The file of a result's numbers."""

LensOutput = tuple[tuple[Panel, ...], Mapping[str, NDArray[Any]]]
"""What a lens's `run` returns: its panels, and the numbers behind them by name."""

SEES, LOOKS = mark("What it sees"), mark("Where it looks")
WHAT_IF, RIGHT = mark("What if"), mark("Is it right")
GROUPS = (SEES, LOOKS, WHAT_IF, RIGHT)
"""The kinds of questions that lenses answer, in the order in which they are offered."""


@dataclass(frozen=True, eq=False, slots=True)
class LensResult:
    """Result of one run of a lens: panels to show and the numbers behind them.

    Attributes:
        lens: its slug.
        panels: what to show, in this order.
        values: the numbers themselves by name.
        chosen: the parameters that it ran with, defaults filled in.
        seconds: how long it took.
    """

    lens: str
    panels: tuple[Panel, ...]
    values: Mapping[str, NDArray[Any]] = field(repr=False)
    chosen: Mapping[str, Any]
    seconds: float

    def npz(self) -> bytes:
        """Write the numbers as an NPZ file, which ``numpy.load`` reads."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **dict(self.values))
        return file.getvalue()

    def _repr_html_(self) -> str:
        """Return the panels as HTML, for a notebook."""
        return "".join(panel.html() for panel in self.panels)


def save_result(result: LensResult, folder: Path, model: Model) -> list[Path]:
    """Write every panel as a file into a folder, and the numbers as `NUMBERS`, the last.

    Args:
        result: what a lens found.
        folder: which is made.
        model: the model that was looked at.

    Returns:
        The paths of what was written.

    Raises:
        OSError: the system refuses it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, panel in enumerate(result.panels, 1):
        file = panel.file(f"{number}-{result.lens}", model)
        if file is not None:
            written.append(folder / file.name)
            written[-1].write_bytes(file.data)
    write_whole(folder / NUMBERS, result.npz())
    return [*written, folder / NUMBERS]


def how_note(how: str) -> tuple[TextPanel, ...]:
    """Return the note on how an answer's numbers are rounded; none where there is nothing to say.

    Args:
        how: in words, as of `hookviz.hooking.channels_last.rounding_note`; empty of plain passes.
    """
    return (TextPanel(how, "note"),) if how else ()


def _keep_to_itself(_output: LensOutput) -> None:
    """Ignore a partial result, which nobody watches."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Model and input that a lens looks at, with the session's cache and whom to report to.

    Attributes:
        model: the model, which is shared and read-only.
        model_input: what the network gets, with its picture and crop.
        image: the image that it was made from; None where the caller gave a tensor.
        cache: the session's cache, if any.
        progress: to be told how far the lens is, at least twice a second. It may take its time:
            where others wait a run gives way in it. What it raises ends the lens.
        partial: to be handed what there is so far, as often as one likes: the same panels as at the
            end, as far as they are. What is shown of it and kept is the front end's choice, and
            what it raises ends the lens. State to go on from belongs into `cache`.
    """

    model: Model
    model_input: ModelInput
    image: InputImage | None
    cache: ByteCache | None = field(default=None, repr=False)
    progress: Progress = ignore
    partial: Callable[[LensOutput], object] = _keep_to_itself

    @property
    def shape(self) -> tuple[int, ...]:
        """``(C, H, W)`` of the input."""
        return tuple(self.model_input.tensor.shape[1:])

    @cached_property
    def trace(self) -> LayerTrace:
        """The layers that a pass over this input runs, with their shapes."""
        return input_trace(self.model, self.model_input)

    @property
    def convs(self) -> tuple[LayerInfo, ...]:
        """The conv layers in order of execution."""
        return self.trace.convs

    def capture(
        self, layers: str | Iterable[str] | None = None, *, logits: bool = False
    ) -> Capture:
        """Return what layers put out for this input, from the session's cache where it has it."""
        return engine.capture(self.model, self.model_input, layers, logits=logits, cache=self.cache)

    @cached_property
    def answered(self) -> Capture:
        """A capture with what the network answers, whatever that is."""
        return self.capture((), logits=True)

    @cached_property
    def scored(self) -> Capture:
        """A capture with class scores.

        Raises:
            ModelError: the network puts out no scores.
        """
        capture = self.answered
        if capture.answer is None:
            raise ModelError(capture.unanswered)
        if not capture.answer.has_classes:
            raise ModelError(no_classes(len(capture.answer.scores)))
        return capture

    @property
    def answer(self) -> Answer:
        """What the network answers.

        Raises:
            ModelError: its output has no scores.
        """
        answer = self.scored.answer
        assert answer is not None
        return answer

    @property
    def top_class(self) -> int:
        """Number of the likeliest class."""
        return self.answer.likeliest(1)[0][0]

    def label(self, number: int) -> str:
        """Return what a class is called in the language that is spoken."""
        return self.model.label(number)


class Preview(NamedTuple):
    """How a small picture of a lens's answer is made.

    Attributes:
        settings: parameters that take less time than their defaults.
        panel: which of the panels with a picture is shown, counted from 0.
        is_dear: whether it takes more than a moment all the same, so that a sample's stands for it.
    """

    settings: Mapping[str, Any] = {}
    panel: int = 0
    is_dear: bool = False


class ChannelQuestion(NamedTuple):
    """What one asks a lens about a channel that is picked up.

    Attributes:
        words: on the button that leads from the channel to the lens.
        settings: parameters with which it answers, beside the layer and the channel.
    """

    words: str
    settings: Mapping[str, str] = {}


@dataclass(frozen=True, eq=False, slots=True)
class Lens:
    """Declaration of a way of looking: its words, its parameters, its run and its script.

    Attributes:
        slug: what `run_lens` takes, for example ``"grad-cam"``.
        title: how people write it.
        question: what a person asks who wants it; it is listed under that.
        group: which kind of question that is, one of `GROUPS`.
        sentence: what a student sees by it, in one sentence.
        parameters: what can be chosen.
        run: the work: a subject and one keyword per parameter in, a `LensOutput` out.
        preview: how its answer is shown small.
        of_class: whether it says where a class is, so that a class's name leads to it.
        of_channel: what one asks it about a channel that is picked up; None for nothing.
        of_images: whether it takes images alone, and no sound, volume or clip.
        script: writes the same computation as code for *Copy as code*, from `LensFacts`.
    """

    slug: str
    title: str
    question: str
    sentence: str
    run: Callable[..., LensOutput] = field(repr=False)
    parameters: tuple[Parameter, ...] = ()
    group: str = field(kw_only=True)
    preview: Preview = field(default=Preview(), kw_only=True)
    of_class: bool = field(default=False, kw_only=True)
    of_images: bool = field(default=False, kw_only=True)
    of_channel: ChannelQuestion | None = field(default=None, kw_only=True)
    script: Callable[[LensFacts], LensCode] = field(repr=False, kw_only=True)
