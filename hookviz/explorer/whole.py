"""Answer with the whole network as it ran: each part's card, the ways between them, small maps."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.drawing.tile_facts import geometry_facts
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explaining.network_map.layout import PlacedPart, in_a_tall_window, lay_out
from hookviz.explaining.network_map.parts import network_map
from hookviz.explaining.network_map.strongest_maps import (
    CHANNELS,
    StrongestMaps,
    on_one_scale,
    small_size,
    strongest_maps,
)
from hookviz.explorer.head import classes_of
from hookviz.explorer.layers import call_words, capture_layer, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.types import ActivationKey
from hookviz.wording import times


class Shown(NamedTuple):
    """A call's first maps: their address, the strongest of them, and the first one's place."""

    address: ActivationKey
    strongest: StrongestMaps
    tile: int


def answer_whole(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the network as nested drawings, with a picture of each layer's strongest channels.

    A part has its card (``x``, ``y``, ``w``, ``h``) in the units of the drawing that it lies in; a
    block also ``size``, ``parts`` and ``lines`` of the drawing in it. In a window that is higher
    than wide the outermost drawing lies as ``tall`` says, whose ``places`` are x and y of each
    part. A layer with maps has ``layer`` and ``output``, as a link names them, ``maps``,
    ``(C, H, W)``, ``channels``, its strongest ones, and ``tile``, the first one's place in the
    picture, in which all small maps lie in rows of ``sprite.columns``.

    Raises:
        HookVizError: the network runs no layer, or the pass can't be run.
    """
    looked = resolve(subject, view)
    answer: Answer = subject.cached(
        "whole",
        subject.colours.diverging,
        compute=lambda: _computed(subject),
        size=lambda kept: len(kept.data) + 600 * len(subject.trace.sequence),
    )
    capture = capture_layer(subject, looked.step.layer)
    return Answer(dict(answer.facts) | {"classes": classes_of(capture)}, answer.data)


def _computed(subject: Subject) -> Answer:
    model, model_input = subject.model, subject.model_input
    with subject.take_turn(model.title, "whole", "") as run:
        reporter = ProgressReporter(run.limit.within(), 2)
        trace = follow_pass(model, model_input, ProgressReporter(reporter.within), joins=True)
        reporter.step()
        found = strongest_maps(
            *(model, model_input),
            count=CHANNELS,
            size=small_size(model_input),
            progress=reporter.within,
        )
    maps, sprite, data = pictured(subject, found)
    steps = {number: step.address for number, step in enumerate(trace.steps, 1) if step.kind}
    sides = {at: maps[call].strongest.shape[1] for at, call in steps.items() if call in maps}
    placed = lay_out(network_map(trace, type(model.network).__name__), sides)
    network = _facts_of(placed, maps) | {"tall": _tall(placed)}
    return Answer({"network": network, "sprite": sprite, "count": len(trace.steps)}, data)


def pictured(
    subject: Subject, found: Mapping[ActivationKey, StrongestMaps]
) -> tuple[Mapping[ActivationKey, Shown], dict[str, Any] | None, bytes]:
    """Draw the small maps of all layers into one picture.

    Returns:
        Each call's maps, with its first one's place; how the picture is divided; and the picture.
    """
    maps: dict[ActivationKey, Shown] = {}
    pictures: list[NDArray[np.float32]] = []
    for at, strongest in found.items():
        call = ActivationKey(at.layer, at.call)
        if call not in maps:  # of a call that puts out several the first
            maps[call] = Shown(at, strongest, len(pictures))
            pictures.extend(on_one_scale(strongest.small))
    if not pictures:
        return maps, None, b""
    grid = make_grid(np.stack(pictures), scale="symmetric", colormap=subject.colours.diverging)
    return maps, geometry_facts(grid.sprite_geometry), grid.sprite


def _facts_of(placed: PlacedPart, maps: Mapping[ActivationKey, Shown]) -> dict[str, Any]:
    part = placed.part
    facts: dict[str, Any] = {
        "name": str(part.address),
        "kind": part.kind,
        "shape": part.shape,
        **dict(
            zip("xywh", _rounded(placed.left, placed.top, placed.width, placed.height), strict=True)
        ),
    }
    found = None if part.is_join else maps.get(part.address)
    if found is not None:
        facts |= {
            "layer": part.address.layer,
            "output": call_words(found.address),
            "maps": list(found.strongest.shape),
            "shape": times(found.strongest.shape),
            "channels": list(found.strongest.channels),
            "tile": found.tile,
        }
    if placed.inside:
        facts["size"] = _rounded(*placed.size)
        facts["parts"] = [_facts_of(each, maps) for each in placed.inside]
        facts["lines"] = _lines(placed)
    return facts


def _tall(placed: PlacedPart) -> dict[str, Any]:
    tall = in_a_tall_window(placed)
    places = [_rounded(each.left, each.top) for each in tall.inside]
    return {"size": _rounded(*tall.size), "places": places, "lines": _lines(tall)}


def _lines(placed: PlacedPart) -> list[list[Any]]:
    return [
        [begin, end, [each for point in points for each in _rounded(*point)]]
        for begin, end, points in placed.lines
    ]


def _rounded(*lengths: float) -> list[float]:
    return [round(length, 3) for length in lengths]
