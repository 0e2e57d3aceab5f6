"""Show how much of what a cell could see it really makes use of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.batch_images import named
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import batches, constants, file_of, forward, in_order
from hookviz.codegen.script_text import as_maps, source_of
from hookviz.drawing import overlay
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.overlay import on_input
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.errors import HookVizError
from hookviz.explaining.attribution.gradients import input_gradient
from hookviz.explaining.attribution.target import AttributionTarget, map_shape
from hookviz.explaining.receptive_fields.receptive_field import (
    MASS,
    Box,
    receptive_fields,
    strongest,
    weights_of_pixels,
)
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Preview, Subject
from hookviz.lenses.contract.many_images import left_out, over_images
from hookviz.lenses.contract.parameters import LayerChoice, MoreImages, WholeNumber
from hookviz.lenses.contract.shared_choices import call_notes, chosen_cell
from hookviz.types import ModelInput, Progress
from hookviz.wording import number, percent, times

Floats = NDArray[np.float64]
_PART = f"{100 * MASS:.0f} %"
_LARGE, _CLOSE = 640, 480  # pixels of the pictures, and of the one that is close up
_DARK = 0.25  # what is left of the light outside of the pixels that count
_LIMITS = mark(
    "This shows how far a cell reaches on average, and how strongly, by small "
    "changes. It does not show what the cell looks for there, and a large change "
    "far out may still matter."
)


def run(
    subject: Subject,
    *,
    layer: str,
    channel: int,
    row: int,
    column: int,
    images: tuple[Any, ...],
    count: int,
) -> LensOutput:
    """Return the mean of ``Σ_c |∂q/∂x_c|`` over images, for each pixel x (Luo et al., 2016).

    q is one cell of the layer's map, or the mean of all channels there where `channel` is −1; the
    middle cell where row and column are. The image looked at comes first, `count` images in all;
    one that was there already is not counted twice. Values: ``map``, float64 ``(H, W)``; ``box``,
    the cell's receptive field as the network's windows have it: top, left, bottom, right, the last
    ones not included; ``pixels``, the fewest that hold 95 % of the sum of ``map``, and ``share``,
    these as a share of those in the box; ``cell``, row and column; ``images``, how many.

    Raises:
        SettingError: the layer has no such channel or cell.
        HookVizError: no gradient gets to the input, or the input is no image.
    """
    cell = chosen_cell(row, column) or middle_cell(subject, layer)
    quantity = AttributionTarget(None, layer, None if channel < 0 else channel, cell)
    weights, reasons = pixel_weights(subject, quantity, images, count)
    total = np.mean(list(weights.values()), axis=0)
    known = receptive_fields(subject.model, subject.model_input).get(layer)
    box = known.box(*cell) if known else (0, 0, subject.shape[1], subject.shape[2])
    chosen = strongest(total)
    size = max(0, box[2] - box[0]) * max(0, box[3] - box[1])
    share = chosen.sum() / size if size else float("nan")
    values = {
        "map": total,
        "box": np.array(box),
        "pixels": np.array(chosen.sum()),
        "share": np.array(share),
        "cell": np.array(cell),
        "images": np.array(len(weights)),
    }
    what = quantity.describe(subject.model)
    panels: list[Panel] = [
        *([TextPanel(_answer(size, float(share)), "answer")] if total.any() and size else []),
        TextPanel(_summarize(what, total, box, float(share), len(weights))),
        *(TextPanel(note, "note") for note in call_notes(subject, layer)),
        *left_out(reasons),
    ]
    if total.any():
        panels += _pictures(subject, total, chosen, box, what)
        panels.append(TextPanel(say(_LIMITS), "note"))
    return tuple(panels), values


def middle_cell(subject: Subject, layer: str) -> tuple[int, int]:
    """Return row and column of the middle of a layer's map."""
    rows, columns = map_shape(subject.model, subject.model_input, layer)[1:]
    return rows // 2, columns // 2


def pixel_weights(
    subject: Subject, quantity: AttributionTarget, images: tuple[Any, ...], count: int
) -> tuple[dict[str, Floats], dict[str, HookVizError]]:
    """Return ``Σ_c |∂q/∂x_c|``, ``(H, W)``, by image, and why some images are left out."""

    def compute(model_input: ModelInput, _image: Any, progress: Progress) -> Floats:
        _check_shape(subject, model_input)
        gradient = input_gradient(subject.model, model_input, quantity, progress=progress)
        return weights_of_pixels(gradient.gradient)

    return over_images(subject, images, compute, count)


def _check_shape(subject: Subject, model_input: ModelInput) -> None:
    if model_input.tensor.shape[1:] != subject.shape:
        raise HookVizError(
            say(
                "it becomes an input of {new_shape}, and the one looked at is {first_shape}.",
                new_shape=times(model_input.tensor.shape[1:]),
                first_shape=times(subject.shape),
            )
        )


def _answer(pixels: int, share: float) -> str:
    """Say in one sentence how few of the pixels that a cell could see move it."""
    return say(
        "Of the {pixels:,} pixels that the cell could see, {share} do nearly all.",
        pixels=pixels,
        share=percent(share),
    )


def _summarize(what: str, total: Floats, box: Box, share: float, images: int) -> str:
    height, width = box[2] - box[0], box[3] - box[1]
    over = say("this image") if images == 1 else say("{images} images", images=images)
    could = say(
        "By the network's windows, {unit} could see {size} pixels",
        unit=what,
        size=times((height, width)),
    )
    if not np.isfinite(total).all():
        return say(
            "{field}; the gradient has NaN or infinities, so nothing can be told of it.",
            field=could,
        )
    if not total.any():
        return say(
            "{field}; over {images} its gradient is zero everywhere, so that no pixel moves it.",
            field=could,
            images=over,
        )
    inner = (total[box[0] : box[2], box[1] : box[3]] > 0).mean()
    return say(
        "{field}. Over {images}, {gradient_share} of its |gradient| lie in {pixel_share} of them, "
        "and {touched_share} have any.",
        field=could,
        images=over,
        gradient_share=_PART,
        pixel_share=percent(share),
        touched_share=percent(float(inner)),
    )


def _pictures(
    subject: Subject, total: Floats, chosen: NDArray[np.bool_], box: Box, what: str
) -> tuple[Panel, ...]:
    end = overlay.color_limit(total)
    colours = coloured(np.sqrt(np.maximum(total, 0) / end), "inferno", low=0.0, high=1.0)
    over = overlay.over_image(subject.model_input, None, colours, opacity=0.8)
    picture = overlay.shrunk(overlay.input_picture(subject.model_input), _LARGE)
    part = np.where(chosen[..., None], np.uint8(255), np.uint8(0)).repeat(3, 2)
    top, left, bottom, right = box
    close = colours[top:bottom, left:right]
    enlarged = max(1, _CLOSE // max(close.shape))
    light = overlay.over_image(subject.model_input, None, part, opacity=1)
    dimmed = np.where(light > 0, picture, (picture * _DARK).astype(np.uint8))
    return (
        ImagePanel(
            say("What it makes use of"),
            on_input(over, box, subject.shape[1:]),
            alt=say(
                "Mean |gradient| of {unit} at each pixel, with its receptive field framed",
                unit=what,
            ),
            caption=say(
                "Black is 0, pale yellow {end_value}, by the square root: a quarter of that is "
                "half as bright. The frame is what it could see.",
                end_value=number(end),
            ),
        ),
        ImagePanel(
            say("Where {part} of it lie", part=_PART),
            on_input(dimmed, box, subject.shape[1:]),
            alt=say(
                "What the network saw, bright where most of the |gradient| of {unit} lies",
                unit=what,
            ),
            caption=say("The fewest pixels that hold so much are left bright."),
        ),
        ImagePanel(
            say("Close up"),
            close.repeat(enlarged, 0).repeat(enlarged, 1),
            alt=say(
                "Mean |gradient| of {unit} in its receptive field, a block for each pixel",
                unit=what,
            ),
            caption=say("The frame: {shape} pixels of the input.", shape=times(close.shape[:2])),
        ),
    )


def script(facts: LensFacts) -> LensCode:
    """Write code for the mean |gradient| of a cell over images: a pass there and back for each."""
    chosen = facts.chosen
    comments = {"layer": "whose cell it is"}
    comments |= {"channel": ""} if chosen["channel"] >= 0 else {}
    comments |= {"row": "", "column": ""} if chosen["row"] >= 0 else {}
    files = [file_of(name) for name in named(chosen["images"])][: chosen["count"]]
    lines = in_order(
        constants(facts, **comments, count="images at most"),
        forward(facts),
        _GRADIENT_AT.format(
            maps=as_maps(facts.layout),
            cell="(ROW, COLUMN)" if chosen["row"] >= 0 else _MIDDLE,
            channel="maps[CHANNEL]" if chosen["channel"] >= 0 else "maps.mean(0)",
        ),
        source_of(weights_of_pixels, strongest),
        batches(files if chosen["count"] > 1 else ()),
        _MEAN,
    )
    return lines, {
        "map": "mean",
        "pixels": "strongest(mean).sum()",
        "cell": "np.array(cell)",
        "images": "len(used)",
    }


_MIDDLE = "(maps.shape[1] // 2, maps.shape[2] // 2)  # the middle one"
_GRADIENT_AT = '''

def gradient_at(images):
    """The gradient at the input of one cell of what the layer puts out, and which cell it is."""
    images = images.clone().requires_grad_()
    maps = forward(images, LAYER)[1][LAYER]{maps}[0]
    cell = {cell}
    (gradient,) = torch.autograd.grad({channel}[cell], images)
    return gradient[0].numpy(), cell

'''
_MEAN = """\
mean = np.zeros(batch.shape[2:])
used = list(batches.values())[:COUNT]
for each in used:
    gradient, cell = gradient_at(each)
    mean += weights_of_pixels(gradient) / len(used)
# Which pixels the cell could see at most, HookViz follows through the network's windows."""


LENS = Lens(
    slug="effective-receptive-field",
    title=mark("Effective receptive field"),
    question=mark("How far does a cell really see?"),
    sentence=mark(
        "Which pixels move one cell of a layer, over many images, of all that it could see."
    ),
    group=LOOKS,
    preview=Preview({"count": 2}),
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="any", of_calls=True, default="last map", help=mark("Whose cell it is.")),
        WholeNumber(
            name="channel",
            label=mark("Channel"),
            low=-1,
            high=100_000,
            default=-1,
            unset=mark("all"),
            help=mark("One channel, in place of the mean of all of them."),
        ),
        *(
            WholeNumber(
                name=name,
                label=label,
                low=-1,
                high=100_000,
                default=-1,
                unset=mark("centre"),
                help=text,
            )
            for name, label, text in (
                ("row", mark("Row"), mark("With a column: the cell, not the middle one.")),
                ("column", mark("Column"), mark("With a row: the cell, not the middle one.")),
            )
        ),
        MoreImages(samples=True, help=mark("To take the mean over, after the one looked at.")),
        WholeNumber(
            name="count",
            label=mark("Images at most"),
            low=1,
            high=1000,
            default=8,
            help=mark("The image looked at is the first."),
        ),
    ),
)
