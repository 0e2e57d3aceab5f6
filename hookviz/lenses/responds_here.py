"""Show which channels of a layer answer to a region of the picture more than to the rest."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import FORWARD, constants, in_order
from hookviz.codegen.script_text import as_maps, source_of
from hookviz.drawing.panels import ChartPanel, GridPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError
from hookviz.explaining.layers.channel_maps import (
    RegionSelectivity,
    highest_first,
    inside_and_outside,
)
from hookviz.explaining.layers.layer_description import field_text
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice
from hookviz.lenses.contract.regions import (
    Region,
    RegionChoice,
    brush_marks,
    covered,
    overlap,
    rectangle_marks,
)
from hookviz.wording import number, percent, times

_VALUES = ("inside", "outside", "deviation", "score", "weights", "ranking")
_MOST, _LEAST = 12, 4  # channels that are shown: of the highest scores, and of the lowest
_HEAD = (
    mark("channel"),
    mark("inside − outside"),
    mark("in deviations"),
    mark("mean inside"),
    mark("mean outside"),
    mark("ratio"),
)


def run(subject: Subject, *, layer: str, region: Region) -> LensOutput:
    """Compare each channel's mean inside of the region with its mean outside.

    A cell (i, j) of a map stands for an equal part of the input's area, and w(i, j), 0…1, is the
    share of that part that is marked; a region smaller than a cell weighs that cell alone. Of a
    channel with the values a(i, j)::

        inside    = Σ w·a / Σ w
        outside   = Σ (1−w)·a / Σ (1−w)
        deviation = √ mean((a − mean(a))²)     over all cells alike
        score     = (inside − outside) / deviation,  0 where every cell has one value

    Channels are ranked by the score. It means the same for layers of any size and sign, which a
    ratio does not; inside / outside is shown beside it where no value of the channel is below 0.
    With whole cells, a share p of them marked, score · √(p (1 − p)) is Pearson's correlation of the
    map with the mark (the point-biserial one; Tate, "Correlation between a discrete and a
    continuous variable", 1954), so that |score| ≤ 1 / √(p (1 − p)). Only finite values count; a
    channel that has none on either side has NaN and is left out.

    Values, float64: ``inside``, ``outside``, ``deviation``, ``score`` ``(C,)``; ``weights``, w,
    ``(H, W)``; ``ranking``, channel numbers, highest score first.

    Raises:
        HookVizError: all of the picture is marked; or the layer's maps, or the input, have no rows
            and columns to mark.
    """
    result = selectivity_on(subject, layer, region)
    values = {name: getattr(result, name) for name in _VALUES}
    if not len(result.ranking):
        says = say(
            "No channel of {layer} has finite values both inside and outside of the region.",
            layer=layer,
        )
        return (TextPanel(says, "bad"),), values
    ranking = result.ranking
    channels = [int(channel) for channel in (*ranking[:_MOST], *ranking[_MOST:][-_LEAST:])]
    most = say("Channel {channel} of {layer} answers most there.", channel=channels[0], layer=layer)
    panels = _panels(subject, result, channels)
    return (TextPanel(most, "answer"), TextPanel(_summarize(result, channels[0])), *panels), values


def selectivity_on(subject: Subject, layer: str, region: Region) -> RegionSelectivity:
    """Return how much more each channel of a layer answers inside of a region than outside.

    Raises:
        HookVizError: all of the picture is marked; or the layer's maps, or the input, have no rows
            and columns to mark.
    """
    maps = _maps(subject, layer)
    if region.area >= 1:
        raise HookVizError(
            say(
                "All of the picture is marked, and so there is no outside to compare with; "
                "leave some of it unmarked."
            )
        )
    weights = region.cover(*maps.shape[1:])
    return RegionSelectivity(layer, maps, weights, *inside_and_outside(maps, weights))


def _maps(subject: Subject, layer: str) -> NDArray[np.float32]:
    """Return the first maps that the layer puts out, ``(C, H, W)``."""
    address = str(subject.trace.map_outputs[layer][0])
    maps: NDArray[np.float32] = subject.capture(layer)[address].values.numpy()
    if maps.ndim != 3 or len(subject.shape) != 3:
        raise HookVizError(
            say(
                "A region is marked on a picture, and {model} takes {input_shape}, of which "
                "{layer} makes {map_shape}; networks that take images, (C, H, W), and layers "
                "that put out maps of them can be asked.",
                model=subject.model.title,
                input_shape=times(subject.shape),
                layer=layer,
                map_shape=times(maps.shape),
            )
        )
    if maps.shape[1] * maps.shape[2] == 1:
        raise HookVizError(
            say(
                "{layer} puts out maps of one cell, which stands for the whole picture and "
                "can't tell inside from outside.{hint}",
                layer=layer,
                hint=_larger(subject),
            )
        )
    return maps


def _larger(subject: Subject) -> str:
    """Name the last layer whose maps have several cells."""
    names = [each.name for each in subject.trace.maps if math.prod(each.output_shape[1:]) > 1]
    return say(" {layer!r} puts out larger ones.", layer=names[-1]) if names else ""


def _ratio(result: RegionSelectivity, channel: int) -> float:
    """Return inside / outside; NaN where a value of the channel is below 0, or none above."""
    inside, outside, values = result.inside[channel], result.outside[channel], result.maps[channel]
    if values[np.isfinite(values)].min() < 0 or not inside > 0:
        return np.nan
    return float(inside / outside) if outside > 0 else np.inf


def _panels(subject: Subject, result: RegionSelectivity, shown: Sequence[int]) -> tuple[Panel, ...]:
    layer = result.layer
    fields = receptive_fields(subject.model, subject.model_input)
    sees = field_text(fields.get(str(subject.trace.map_outputs[layer][0])))
    chart = ChartPanel(
        say("Channels that answer more inside than outside"),
        tuple(map(str, shown)),
        {say("inside − outside"): result.score[shown]},
        unit=say("inside − outside, in the channel's own deviations"),
        caption=say("The {count} highest", count=min(_MOST, len(shown)))
        + (
            say(", and at the right the {count} lowest", count=len(shown) - _MOST)
            if len(shown) > _MOST
            else ""
        )
        + say(
            " of {count:,}. A cell counts where it lies, although it {field}.",
            count=len(result.maps),
            field=sees,
        ),
        layer=layer,
    )
    maps_panel = GridPanel(
        say("What these channels put out"),
        result.grid(shown),
        say("In the same order."),
        layer=layer,
    )
    rows = tuple(_row(result, channel) for channel in shown)
    return chart, maps_panel, TablePanel(say("In numbers"), _HEAD, rows)


def _summarize(result: RegionSelectivity, first: int) -> str:
    """Say which channel answers most, and how much of the picture is marked."""
    layer, weights, score = result.layer, result.weights, result.score
    marked = say(
        "{share} of the picture is marked, which is ", share=percent(float(weights.mean()))
    )
    marked += say(
        "{cell_count} of the {shape} cells of {layer}.",
        cell_count=number(float(weights.sum())),
        shape=times(weights.shape),
        layer=layer,
    )
    left_out = int((~np.isfinite(score)).sum())
    if left_out:
        marked += say(
            " {count:,} channels are left out: they have no finite value on one side.",
            count=left_out,
        )
    if not score[first] > 0:
        return say(
            "No channel of {layer} answers more inside of the region than outside. {region}",
            layer=layer,
            region=marked,
        )
    ratio = _ratio(result, first)
    more = say(", {ratio} times as much", ratio=number(ratio)) if np.isfinite(ratio) else ""
    more = say(", and nothing at all outside") if np.isinf(ratio) else more
    return say(
        "Channel {channel} of {layer} answers most: {inside_mean} on average inside and "
        "{outside_mean} outside, {deviations} of its deviations more{ratio}. {region}",
        channel=first,
        layer=layer,
        inside_mean=number(result.inside[first]),
        outside_mean=number(result.outside[first]),
        deviations=number(score[first]),
        ratio=more,
        region=marked,
    )


def _row(result: RegionSelectivity, channel: int) -> tuple[str | int, ...]:
    ratio = _ratio(result, channel)
    inside, outside = result.inside[channel], result.outside[channel]
    return (
        channel,
        *map(number, (inside - outside, result.score[channel], inside, outside)),
        "–" if np.isnan(ratio) else number(ratio),
    )


def script(facts: LensFacts) -> LensCode:
    """Write each channel's mean inside of the region against its mean outside."""
    rectangle = str(facts.chosen["region"]).startswith("rect:")
    says, marks = (
        ("left, top, right, bottom, as shares", rectangle_marks)
        if rectangle
        else ("runs of cells, unmarked and marked in turn", brush_marks)
    )
    functions = source_of(marks, overlap, covered, inside_and_outside, highest_first)
    lines = in_order(
        constants(facts, layer="", region=says),
        FORWARD,
        functions,
        _COMPARE.format(marks=marks.__name__, maps=as_maps(facts.layout)),
    )
    return lines, {name: name for name in _VALUES}


_COMPARE = """
with torch.no_grad():
    found = forward(batch, LAYER)[1][LAYER]  # of its first call
maps = found{maps}[0].numpy()  # (C, H, W)
weights = covered(*{marks}(REGION), *maps.shape[1:])
inside, outside, deviation, score = inside_and_outside(maps, weights)
ranking = highest_first(score)"""


LENS = Lens(
    slug="responds-here",
    title=mark("A region of the picture"),
    question=mark("Which channels respond to a part of the image?"),
    sentence=mark(
        "Which channels of a layer answer more to the part that is marked than to the rest."
    ),
    group=LOOKS,
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="maps", default="last map", help=mark("Early layers know where.")),
        RegionChoice(help=mark("Drag over the picture, or paint; arrow keys move a rectangle.")),
    ),
)
