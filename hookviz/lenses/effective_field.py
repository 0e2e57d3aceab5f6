"""Effective receptive field: how much of what a cell could see it really makes use of."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.features import named
from hookviz.capturing.inputs import prepare
from hookviz.drawing import overlay
from hookviz.drawing.framing import on_input
from hookviz.drawing.palette import coloured
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.explaining.attribution import input_gradient
from hookviz.explaining.attribution_target import AttributionTarget, map_shape
from hookviz.explaining.effective_field import MASS, strongest, weights_of_pixels
from hookviz.explaining.receptive_field import Box, receptive_fields
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.more_images import prepared_alike
from hookviz.lenses.contract.parameters import LayerChoice, MoreImages, WholeNumber
from hookviz.lenses.contract.quantity_choice import check_pixels, chosen_cell, first_call_notes
from hookviz.types import ModelInput
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
    """The mean of ``Σ_c |∂q/∂x_c|`` over images, for each pixel x of the input (Luo et al., 2016).

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
    check_pixels(subject)
    rows, columns = map_shape(subject.model, subject.model_input, layer)[1:]
    cell = chosen_cell(row, column) or (rows // 2, columns // 2)
    quantity = AttributionTarget(None, layer, None if channel < 0 else channel, cell)
    seen = _each_image(subject, quantity, images, count)
    total = np.mean([seen.weights[name] for name in seen.weights], axis=0)
    known = receptive_fields(subject.model, subject.shape).get(layer)  # of its first call
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
        "images": np.array(len(seen.weights)),
    }
    what = quantity.describe(subject.model)
    panels: list[Panel] = [
        TextPanel(_says(what, total, box, float(share), len(seen.weights))),
        *(TextPanel(note, "note") for note in first_call_notes(subject, layer)),
        *(
            TextPanel(say("{name} is left out: {reason}", name=shorten(name), reason=why), "bad")
            for name, why in seen.out.items()
        ),
    ]
    if total.any():
        panels += _pictures(subject, total, chosen, box, what)
        panels.append(TextPanel(say(_LIMITS), "note"))
    return tuple(panels), values


@dataclass(frozen=True, eq=False, slots=True)
class _Seen:
    """Per image |gradient|, ``(H, W)``; and why others are left out."""

    weights: dict[str, Floats] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)


def _each_image(
    subject: Subject, quantity: AttributionTarget, images: tuple[Any, ...], count: int
) -> _Seen:
    first = subject.image if subject.image is not None else subject.model_input
    # One more than are wanted: the image looked at may be among the others.
    listed = dict(list(named([first, *images]).items())[: count + 1])
    reporter = ProgressReporter(subject.progress, 1 + len(listed))
    inputs = prepared_alike(subject, listed, reporter)
    seen, digests = _Seen(), set[str]()
    for name, made in inputs.items():
        try:
            if not isinstance(made, ModelInput):
                made = prepare(subject.model, made)  # noqa: PLW2901 - to say why it can't be
            if made.tensor.shape[1:] != subject.shape:
                raise HookVizError(
                    say(
                        "it becomes an input of {new_shape}, and the one looked at is {shape}.",
                        new_shape=times(made.tensor.shape[1:]),
                        shape=times(subject.shape),
                    )
                )
            if made.digest not in digests and len(digests) < count:
                gradient = input_gradient(subject.model, made, quantity, progress=reporter.within)
                seen.weights[name] = weights_of_pixels(gradient.gradient)
            digests.add(made.digest)
        except SettingError:
            raise
        except HookVizError as error:
            if reporter.was_ended_by(error) or not seen.weights:
                raise
            seen.out[name] = str(error)
        reporter.step()
    return seen


def _says(what: str, total: Floats, box: Box, share: float, images: int) -> str:
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
    over = overlay.over_input(subject.model_input, colours, opacity=0.8)
    picture = overlay.shrunk(overlay.input_picture(subject.model_input), _LARGE)
    part = np.where(chosen[..., None], np.uint8(255), np.uint8(0)).repeat(3, 2)
    top, left, bottom, right = box
    close = colours[top:bottom, left:right]
    enlarged = max(1, _CLOSE // max(close.shape))
    light = overlay.over_input(subject.model_input, part, opacity=1)
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


LENS = Lens(
    slug="effective-receptive-field",
    title=mark("Effective receptive field"),
    question=mark("How far does a cell really see?"),
    sentence=mark(
        "Which pixels move one cell of a layer, over many images, of all that it could see."
    ),
    run=run,
    parameters=(
        LayerChoice(kind="any", default="last map", help=mark("Whose cell it is.")),
        WholeNumber(
            name="channel",
            label=mark("Channel"),
            low=-1,
            high=100_000,
            default=-1,
            help=mark("−1: the mean of all channels."),
        ),
        *(
            WholeNumber(
                name=name,
                label=label,
                low=-1,
                high=100_000,
                default=-1,
                help=text,
            )
            for name, label, text in (
                ("row", mark("Row"), mark("With a column: the cell. −1: the middle one.")),
                ("column", mark("Column"), mark("With a row: the cell. −1: the middle one.")),
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
