"""Show which parts of the image a score needs: a square hides one after the other."""

from typing import Any

import numpy as np

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import baseline, in_order, value_of
from hookviz.codegen.script_text import source_of
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.grid import grid_of_any
from hookviz.drawing.overlay import on_image
from hookviz.drawing.panels import GridPanel, ImagePanel, Panel, TextPanel, overlay_panel
from hookviz.errors import SettingError
from hookviz.explaining.attribution.methods import (
    BASELINES,
    Occlusion,
    Windows,
    baseline_of,
    box_slices,
    hidden,
    occlusion,
    over_pixels,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import (
    WHAT_IF,
    ChannelQuestion,
    Lens,
    LensOutput,
    Preview,
    Subject,
    highest_ninth,
    how_note,
)
from hookviz.lenses.contract.parameters import OneOf, PixelCount
from hookviz.lenses.contract.shared_choices import TARGET_CHOICES, call_notes, target_of
from hookviz.wording import number, times

_WINDOW, _STRIDE = 1 / 7, 1 / 10  # of the shorter side: a hundred positions on a square

_LIMITS = mark(
    "This shows which parts are needed while the rest stays. It does not show "
    "what two parts do together: of two eyes either will do, and so neither "
    "seems to matter. The square is something new in the picture, too, to which "
    "the network may answer; try another kind."
)
_LIMITS_ELSEWHERE = mark(
    "This shows which parts are needed while the rest stays. It does not show what two parts do "
    "together: where either will do, neither seems to matter."
)


def run(subject: Subject, *, baseline: str, window: int, stride: int, **target: Any) -> LensOutput:
    """Show how much a quantity q falls while a square of the input is hidden, square by square.

    q is chosen by `TARGET_CHOICES`: the score of a class before the softmax or, where a layer is
    given, the mean of a channel of that layer, or one cell of it (Zeiler and Fergus, 2014). A
    square has `window` pixels a side, `stride` from one to the next, at most `window`, so that no
    pixel is left out; what takes its place is in `hookviz.explaining.attribution.methods`. Of
    sound, volumes and clips a
    box of the input's proportions is hidden, whose shortest side is `window`. Values, float64:
    ``map``, the mean fall over all squares that hide a pixel, ``(H, W)``; ``drops``, the fall for
    each square, ``(rows, columns)``; ``value`` (q). They have every axis of the input but the
    channels.

    Raises:
        SettingError: the square is larger than the input; there is no such channel or cell; or the
            colour can't be had.
        ModelError: no layer is chosen and the network puts out no class scores.
    """
    windows = windows_on(subject, window, stride)
    quantity = target_of(subject, target)
    result = hide(subject, quantity, windows, baseline)
    values = {"map": result.map, "drops": result.drops, "value": np.array(result.value)}
    return _panels(subject, quantity, windows, result), values


def hide(
    subject: Subject, quantity: AttributionTarget, windows: Windows, baseline: str
) -> Occlusion:
    """Compute how much a quantity falls where each box hides the input; see `run`."""
    return occlusion(
        subject.model,
        subject.model_input,
        quantity,
        baseline_of(subject.model, subject.model_input, baseline),
        windows=windows,
        progress=subject.progress,
    )


def windows_on(subject: Subject, window: int, stride: int) -> Windows:
    """Return where the box stands; refuse one that is larger than the subject's input."""
    shorter = min(subject.shape[1:])
    if window > shorter:
        raise SettingError(
            say(
                "window={window} is more than the input has: {shape} pixels. It can be 1 to "
                "{limit}, or 0 for a seventh of that.",
                window=window,
                shape=times(subject.shape[1:]),
                limit=shorter,
            )
        )
    return windows_of(subject.shape, window, stride)


def windows_of(shape: tuple[int, ...], window: int, stride: int) -> Windows:
    """Return where the box stands on an input ``(C, H, W)``, or of other axes than H and W."""
    shape = shape[1:]
    shorter = min(shape)
    longer = [1.0] * 2 if len(shape) == 2 else [size / shorter for size in shape]
    sides, strides = (
        tuple(round(length * factor) for factor in longer)
        for length in (window, min(stride, window))
    )
    return Windows(shape, sides, strides)


def _panels(
    subject: Subject, quantity: AttributionTarget, windows: Windows, result: Occlusion
) -> tuple[Panel, ...]:
    what = quantity.describe(subject.model)
    drops = np.nan_to_num(result.drops, nan=0.0, posinf=0.0, neginf=0.0)
    box, most = windows.boxes[int(drops.argmax())], float(drops.max())
    words = say("Occlusion of {quantity}", quantity=what)
    is_image = len(windows.shape) == 2
    return (
        *([TextPanel(_answer(what, result, most), "answer")] if is_image and most > 0 else []),
        TextPanel(_summarize(what, windows, result, most, box)),
        *(TextPanel(note, "note") for note in call_notes(subject, quantity.layer)),
        *(_on_image(subject, what, words, result, box) if is_image else ()),
        TextPanel(say(_LIMITS) if is_image else say(_LIMITS_ELSEWHERE), "note"),
        *how_note(result.how),
        GridPanel(
            say("Square by square") if is_image else say("Part by part"),
            grid_of_any(result.drops[None].astype(np.float32), scale="symmetric", title=words),
            say("A cell for each position of the square.")
            if is_image
            else say("A cell for each position of what is hidden."),
        ),
    )


def _answer(what: str, result: Occlusion, most: float) -> str:
    """Say in one sentence which part is needed most."""
    return say(
        "What is {place} is needed most: without it {quantity} falls from {value} to {least}.",
        place=highest_ninth(result.map),
        quantity=what,
        value=number(result.value),
        least=number(result.value - most),
    )


def _on_image(
    subject: Subject, what: str, words: str, result: Occlusion, box: tuple[slice, ...]
) -> tuple[Panel, Panel]:
    end = overlay.color_limit(result.map)
    rows, columns = box
    return (
        overlay_panel(
            say("On the image"),
            subject.model_input,
            subject.image,
            coloured(result.map, "RdBu_r", low=-end, high=end),
            alt=say("{title}, on the image", title=words),
            caption=say(
                "Red: it falls where this is hidden; blue: it rises. Full red is {end_value}, full "
                "blue −{end_value}.",
                end_value=number(end),
            ),
        ),
        ImagePanel(
            say("Where it is needed most"),
            on_image(
                subject.model_input,
                subject.image,
                (rows.start, columns.start, rows.stop, columns.stop),
            ),
            alt=say(
                "The image, with the square framed without which {quantity} is least",
                quantity=what,
            ),
            caption=say("Without what is in the frame, it is least."),
        ),
    )


def _summarize(
    what: str, windows: Windows, result: Occlusion, most: float, box: tuple[slice, ...]
) -> str:
    is_image = len(windows.shape) == 2
    count, value = len(windows.boxes), number(result.value)
    if is_image:
        tried = say(
            "A square of {side}×{side} pixels, in steps of {stride}, hid {part_count:,} parts "
            "of the input, one after the other. Whole, {quantity} is {value}",
            side=windows.sides[0],
            stride=windows.strides[0],
            part_count=count,
            quantity=what,
            value=value,
        )
    else:
        tried = say(
            "{size} values, in steps of {step}, were hidden at {count:,} places of the input, one "
            "after the other. Whole, {quantity} is {value}",
            size=times(windows.sides),
            step=times(windows.strides),
            count=count,
            quantity=what,
            value=value,
        )
    if not most > 0:
        return say("{finding}, and no part makes it less by being hidden.", finding=tried)
    if not is_image:
        return say(
            "{finding}; it is least, {value}, without {places}.",
            finding=tried,
            value=number(result.value - most),
            places="×".join(f"{axis.start}…{axis.stop - 1}" for axis in box),
        )
    rows, columns = box
    return say(
        "{finding}; it is least, {value}, without rows {top} to {bottom} and columns "
        "{left} to {right}.",
        finding=tried,
        value=number(result.value - most),
        top=rows.start,
        bottom=rows.stop - 1,
        left=columns.start,
        right=columns.stop - 1,
    )


def script(facts: LensFacts) -> LensCode:
    """Write a pass for each position of the square."""
    windows = windows_of(facts.shape, facts.chosen["window"], facts.chosen["stride"])
    sizes = in_order(
        f"SIDES = {windows.sides}  # of what is hidden, in rows and columns",
        f"STRIDES = {windows.strides}  # from one to the next",
    )
    functions = source_of(box_slices, hidden, over_pixels)
    lines = in_order(*value_of(facts), sizes, baseline(facts), functions, _DROPS)
    return lines, {"map": "over_pixels(drops, boxes)", "drops": "drops", "value": "value"}


_DROPS = """
boxes = box_slices(batch.shape[2:], SIDES, STRIDES)
with torch.no_grad():
    value = value_of(batch).item()
    drops = [value - value_of(hidden(batch, box, baseline)).item() for box in boxes]
positions = [len({box[axis].start for box in boxes}) for axis in range(len(SIDES))]
drops = np.reshape(drops, positions)"""


LENS = Lens(
    slug="occlusion",
    title=mark("Occlusion"),
    question=mark("What if a part of the image were hidden?"),
    sentence=mark(
        "Which parts of the image a score needs: each is hidden in turn, and the score falls."
    ),
    group=WHAT_IF,
    of_channel=ChannelQuestion(mark("What if …?")),
    preview=Preview({"window": 56, "stride": 28}),
    run=run,
    script=script,
    parameters=(
        *TARGET_CHOICES,
        OneOf(
            name="baseline",
            label=mark("Hidden by"),
            choices=BASELINES,
            help=mark("zero: the mean colour that the network's preprocessing takes off."),
        ),
        PixelCount(
            name="window",
            label=mark("Square"),
            share=_WINDOW,
            help=mark("Its side in pixels of the input; by itself a seventh of the shorter side."),
        ),
        PixelCount(
            name="stride",
            label=mark("Step"),
            share=_STRIDE,
            help=mark(
                "Pixels from one to the next, up to the square's side; by itself a tenth of the "
                "shorter side."
            ),
        ),
        BESIDE_RANDOM,
    ),
)
