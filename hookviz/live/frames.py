"""Draw one frame of a stream, by the steps that an image takes through the explorer.

Every step is the explorer's own function, and a frame's pass is of one image, so a frame that is
frozen and opened there gives the same numbers: to the last bit, or of a convolutional network to
rounding, since a stream's passes have channels last in memory, which is faster (see
`hookviz.hooking.channels_last`). The hooks are on a replica out of the model's pool for the time of
the pass alone, so a stream that ends, however it does, leaves none behind; to keep a replica for
itself would save a hundredth of a pass.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any
from weakref import ref

import torch
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from hookviz import shallow_json
from hookviz.capturing import engine
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.grid import Grid, ScaleLock, scale_of
from hookviz.errors import HookVizError, ImageError, shorten
from hookviz.explorer.rendering import Look
from hookviz.hooking.channels_last import faster_model, lay_out
from hookviz.images import formats, reading
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Capture, InputImage, Model, ModelInput, Progress

LONGEST = 1024
"""Letters of a message; one of ours has fewer than a hundred."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a stream shows: model, step and drawing. Replaced as a whole by each new choice.

    Attributes:
        use_model: borrows the model for a block; called in other threads than the page's.
        size: side of the input in pixels, as of `hookviz.prepare_input`; None for the model's own.
        whole: whether the input is the whole frame instead of its centre crop.
        step: the `ActivationKey`, as text, whose output is drawn.
        look: how it is drawn.
        language: in which the frames are described.
    """

    use_model: Callable[[], AbstractContextManager[Model]]
    size: int | None
    whole: bool
    step: str
    look: Look
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a viewer wants to know of each frame beside the grid.

    Attributes:
        channel: the channel that is picked up, if one is.
        hold: whether the colours stay as they were when this became true.
        cell: row and column of a cell of the channel whose value is wanted, if any.
        values: whether the picked channel's map is wanted as numbers, in place of the grid.
    """

    channel: int | None = None
    hold: bool = False
    cell: tuple[int, int] | None = None
    values: bool = False


def read_stream_options(text: str) -> StreamOptions:
    """Read the options in a message.

    Raises:
        HookVizError: it is too long, no JSON, or says something else.
    """
    try:
        message = shallow_json.parse(text) if len(text) <= LONGEST else None
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise _unknown_message(text)
    channel, cell = message.get("channel"), message.get("cell")
    match message.get("hold", False), message.get("values", False), cell:
        case (bool(hold), bool(values), [row, column]) if all(map(_is_index, (row, column))):
            options = StreamOptions(channel, hold, (row, column), values)
        case (bool(hold), bool(values), None):
            options = StreamOptions(channel, hold, values=values)
        case _:
            raise _unknown_message(text)
    if options.channel is not None and not _is_index(options.channel):
        raise _unknown_message(text)
    return options


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _unknown_message(text: str) -> HookVizError:
    return HookVizError(
        say(
            '{text} says nothing to a stream of frames; {{"channel": 12, "hold": false, '
            '"cell": [3, 4]}} would, in {limit} letters at most.',
            text=shorten(repr(text), 60),
            limit=LONGEST,
        )
    )


CAMERA_WIDTH = 640
"""Pixels that the browser asks a camera for; networks see less."""

MOST_BYTES = 1_000_000
"""Most bytes of a frame's file. A photograph of a network's input size has 20 thousand."""

MOST_PIXELS = 4_000_000
"""Most pixels of a frame; the page makes it as small as the network's input."""

_MOST_SCANS = 30  # of a JPEG, each over all pixels; a browser makes one, or about ten
_FORMATS: tuple[type[ImageFile], ...] = (JpegImageFile, PngImageFile, WebPImageFile)


@dataclass(frozen=True, eq=False, slots=True)
class DrawnFrame:
    """Frame with its pass and its grid.

    Attributes:
        image: the frame.
        capture: its pass, with the class scores.
        maps: float32 on the CPU, ``(C, H, W)``, what the step put out.
        grid: the channels as drawn.
        step: whose output is drawn.
        passed: the model as the pass had it. Whoever holds it until the next frame saves laying its
            weights out anew.
    """

    image: InputImage
    capture: Capture
    maps: torch.Tensor
    grid: Grid
    step: str
    passed: Model


@dataclass(slots=True)
class FrameTimer:
    """Timer of the parts of a frame's way, in milliseconds by name."""

    ms: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Note how long the block takes."""
        started = time.perf_counter()
        yield
        self.ms[part] = round((time.perf_counter() - started) * 1000, 2)


def draw(
    data: bytes,
    model: Model,
    subject: Subject,
    *,
    held: ScaleLock | None,
    timer: FrameTimer,
    check: Progress,
) -> DrawnFrame:
    """Draw the frame as a grid of what the subject's step puts out for it.

    Args:
        data: a JPEG, WebP or PNG file.
        model: of the subject.
        subject: what is shown.
        held: the scale that stays; filled in here where it is not of this layer yet. None for a
            scale of each frame's own.
        timer: measures each part.
        check: called after every layer; what it raises ends the pass.

    Raises:
        HookVizError: the frame can't be read, or the network can't take it; in a person's words.
    """
    with timer.measure("decode"):
        _check(data)
        image = reading.decode_small_file(data, "frame")
    with timer.measure("shrink"):
        model_input = prepare_input(model, image, size=subject.size, whole=subject.whole)
    with timer.measure("pass"):
        layer = ActivationKey.read(subject.step).layer
        input_trace(model, model_input)  # tells whether a pass does more than compute
        passed = faster_model(model, model_input.tensor)
        capture = _capture(model, passed, model_input, layer, check)
        recorded = capture[subject.step]
    with timer.measure("grid"):
        of = scale_of(model, recorded, subject.look.scale)
        known = held if held is not None and held.of == of else None
        grid = subject.look.draw(recorded, known)
        if held is not None and known is None:
            signed = bool((recorded.values < 0).any())
            held.of, held.limits, held.signed = of, grid.limits, signed
        maps = middle_maps(recorded.values)
    return DrawnFrame(image, capture, maps, grid, subject.step, passed)


def _capture(
    model: Model, passed: Model, model_input: ModelInput, layer: str, check: Progress
) -> Capture:
    """Capture the layer, plainly or as `passed` has it; in no cache, whose numbers are exact."""
    if passed is model:
        return engine.capture(model, model_input, layer, progress=check)
    laid_out = replace(model_input, tensor=lay_out(model_input.tensor))
    capture = engine.capture(passed, laid_out, layer, progress=check)
    return replace(capture, model_input=model_input, made_by=ref(model))


def _check(data: bytes) -> None:
    """Check that a frame is small enough to be decoded again and again.

    Raises:
        ImageError: it is of another format, or too large.
    """
    reader = formats.find_reader(data[: formats.HEAD], "frame")
    if reader not in _FORMATS:
        raise ImageError(say("A frame is a JPEG, WebP or PNG file; this is of another format."))
    scans = data.count(b"\xff\xda") if reader is JpegImageFile else 0
    if scans > _MOST_SCANS:
        raise ImageError(
            say(
                "A frame of {scans} scans is too much work; {limit} are read.",
                scans=scans,
                limit=_MOST_SCANS,
            )
        )
    try:
        width, height = reader(BytesIO(data)).size
    except Exception:  # noqa: BLE001 - decoding it says what is wrong, in words
        return
    if width * height > MOST_PIXELS:
        raise ImageError(
            say(
                "This frame has {width} × {height} pixels. A stream's have up to "
                "{limit:.0f} million; as large as the network's input is enough.",
                width=width,
                height=height,
                limit=MOST_PIXELS / 1e6,
            )
        )
