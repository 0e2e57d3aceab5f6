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
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.panels import ImagePanel, OverlayPanel, Panel, TextPanel, overlay_panel
from hookviz.errors import HookVizError, ModelError
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.parameters import Parameter
from hookviz.outputs.answer import Answer, no_classes
from hookviz.paths import write_whole
from hookviz.types import Capture, InputImage, LayerInfo, Model, ModelInput, Progress, ignore
from hookviz.wording import number

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
    """Write each panel and the numbers into a folder, which is made; return their paths.

    The last one is that of the numbers, `NUMBERS`.

    Raises:
        OSError: the system refuses it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for position, panel in enumerate(result.panels, 1):
        file = panel.file(f"{position}-{result.lens}", model)
        if file is not None:
            written.append(folder / file.name)
            written[-1].write_bytes(file.data)
    write_whole(folder / NUMBERS, result.npz())
    return [*written, folder / NUMBERS]


def how_note(how: str) -> tuple[TextPanel, ...]:
    """Return the note of `hookviz.hooking.channels_last.rounding_note`; none for plain passes."""
    return (TextPanel(how, "note"),) if how else ()


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
    partial: Callable[[LensOutput], object] = lambda _output: None

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

    def check_maps(self, layer: str, values: NDArray[Any]) -> None:
        """Refuse a layer's output that is no maps ``(C, H, W)``, for a lens that draws channels.

        Raises:
            HookVizError: it has other axes.
        """
        if values.ndim != 3:
            raise HookVizError(
                say(
                    "{layer} of {model} puts out {shape}, and this lens draws channels that are "
                    "maps, (C, H, W). Numbers of any shape are told by the lens health.",
                    layer=layer,
                    model=self.model.title,
                    shape=values.shape,
                )
            )

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


_NINTHS = (
    *(mark("at the upper left"), mark("at the top"), mark("at the upper right")),
    *(mark("at the left"), mark("in the middle"), mark("at the right")),
    *(mark("at the lower left"), mark("at the bottom"), mark("at the lower right")),
)


def highest_ninth(values: NDArray[Any]) -> str:
    """Return in which ninth of an image a map ``(H, W)`` is highest, in words.

    >>> import numpy as np
    >>> highest_ninth(np.eye(9)[:1])
    'at the upper left'
    """
    rows, columns = values.shape
    row, column = divmod(int(np.nan_to_num(values, nan=-np.inf).argmax()), columns)
    return say(_NINTHS[row * 3 // rows * 3 + column * 3 // columns])


def share_of_half(sizes: NDArray[Any]) -> float | None:
    """Return the share of cells, the largest first, that have half of a map; None of all zeros.

    >>> import numpy as np
    >>> share_of_half(np.array([[1.0, 8.0], [2.0, 3.0]]))
    0.25
    """
    summed = np.sort(sizes, axis=None)[::-1].cumsum(dtype=np.float64)
    if not summed[-1] > 0:
        return None
    return (int(np.searchsorted(summed, summed[-1] / 2)) + 1) / sizes.size


def map_panels(
    subject: Subject, values: NDArray[Any], words: str, end_says: str, *, signed: bool
) -> tuple[OverlayPanel, ImagePanel]:
    """Lay a map ``(H, W)`` of the input's pixels over the image, and draw it alone.

    Args:
        subject: whose image.
        values: the map.
        words: its title.
        end_says: a marked sentence about the end colour, which stands for ``{end_value}``.
        signed: whether it has values below 0, which are blue.
    """
    end = overlay.color_limit(values, overlay.BRIGHT)
    colormap, low = ("RdBu_r", -end) if signed else ("inferno", 0.0)
    colours = coloured(values, colormap, low=low, high=end)
    on_image = overlay_panel(
        say("On the image"),
        subject.model_input,
        subject.image,
        colours,
        opacity=0.75,
        alt=say("{title}, on the image", title=words),
    )
    alone = ImagePanel(
        say("The map alone"),
        overlay.over_image(subject.model_input, subject.image, colours, opacity=1),
        alt=say("{title}, one value per pixel of the input", title=words),
        caption=say(end_says, end_value=number(end)),
    )
    return on_image, alone
