"""Answer with the map of the whole network, and the reasons for the score of a class.

The map has a card for each part, the lines between them, and small maps. A class has its channels,
lines and paths on that map.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.grid import geometry_facts, make_grid
from hookviz.errors import HookVizError
from hookviz.explaining.network_map.class_paths import (
    ALONE,
    ChannelPath,
    ClassPaths,
    PathStep,
    class_paths,
    shares_of,
)
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explaining.network_map.layout import (
    ENTRY,
    EXIT,
    Part,
    PlacedPart,
    in_a_tall_window,
    in_a_wide_window,
    lay_out,
    network_map,
    shares_along,
)
from hookviz.explaining.network_map.mapped_network import (
    CHANNELS,
    StrongestMaps,
    on_one_scale,
    small_size,
    strongest_maps,
)
from hookviz.explorer.excites import atlas_of_step, patches_of
from hookviz.explorer.layers import call_words, capture_layer, resolve
from hookviz.explorer.photograph import classes_of
from hookviz.explorer.question import Answer, NotThereError, Report, is_below, written
from hookviz.explorer.subject import Subject, between_layers
from hookviz.explorer.view import View
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import joined, say
from hookviz.types import ActivationKey
from hookviz.wording import number, percent, times


class LayerMaps(NamedTuple):
    """Strongest maps of a call; `tile` is the position of the first one in the picture."""

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
    resolved = resolve(subject, view)
    answer: Answer = subject.cached(
        "whole",
        subject.colours.diverging,
        compute=lambda: _network(subject),
        size=lambda each: len(each.data) + 600 * len(subject.trace.sequence),
    )
    capture = capture_layer(subject, resolved.step.layer)
    return Answer(dict(answer.facts) | {"classes": classes_of(capture)}, answer.data)


def _network(subject: Subject) -> Answer:
    model, model_input = subject.model, subject.model_input
    with subject.take_turn(model.title, "whole", "") as run:
        reporter = ProgressReporter(between_layers(run, model), 2)
        trace = follow_pass(model, model_input, ProgressReporter(reporter.within), joins=True)
        reporter.step()
        found = strongest_maps(
            model,
            model_input,
            count=CHANNELS,
            size=small_size(model_input),
            progress=reporter.within,
        )
    maps, sprite, data = _pictured(subject, found)
    steps = {number: step.address for number, step in enumerate(trace.steps, 1) if step.kind}
    sides = {at: maps[call].strongest.shape[1] for at, call in steps.items() if call in maps}
    placed = lay_out(network_map(trace, type(model.network).__name__), sides)
    placed = in_a_wide_window(placed)
    tall = in_a_tall_window(placed)
    network = _facts_of(placed, maps)
    network["tall"] = {
        "size": _rounded(*tall.size),
        "places": [_rounded(each.left, each.top) for each in tall.inside],
        "lines": _lines(tall),
    }
    return Answer({"network": network, "sprite": sprite, "count": len(trace.steps)}, data)


def _pictured(
    subject: Subject, found: Mapping[ActivationKey, StrongestMaps]
) -> tuple[Mapping[ActivationKey, LayerMaps], dict[str, Any] | None, bytes]:
    """Draw the small maps of all layers into one picture.

    Returns:
        Each call's maps; the geometry of the picture; and the picture.
    """
    maps: dict[ActivationKey, LayerMaps] = {}
    pictures: list[NDArray[np.float32]] = []
    for at, strongest in found.items():
        call = ActivationKey(at.layer, at.call)
        if call not in maps:  # of a call that puts out several the first
            maps[call] = LayerMaps(at, strongest, len(pictures))
            pictures.extend(on_one_scale(strongest.small))
    if not pictures:
        return maps, None, b""
    grid = make_grid(np.stack(pictures), scale="symmetric", colormap=subject.colours.diverging)
    return maps, geometry_facts(grid.sprite_geometry), grid.sprite


def _facts_of(placed: PlacedPart, maps: Mapping[ActivationKey, LayerMaps]) -> dict[str, Any]:
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


def _lines(placed: PlacedPart) -> list[list[Any]]:
    return [
        [begin, end, [each for point in points for each in _rounded(*point)]]
        for begin, end, points in placed.lines
    ]


def _rounded(*lengths: float) -> list[float]:
    return [round(length, 3) for length in lengths]


_MOST_CHANNELS = 12  # of a layer that are listed with their shares
_LEAST_SHARE = 0.0005  # of a line; lines with less are left out


def answer_why(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer with the channels that a class needs, backwards through the map of the network.

    Facts: ``class``, its number. ``blocks`` has by the name of a block, ``"/"`` for the network,
    the share of each line in it as ``[from, to, share]``, with null for its borders. ``layers`` has
    by the name of a part its channels that speak most for the class with their ``shares``, and
    ``tile``, the first one's place in the picture, as the answer about the whole network.
    ``ways`` have steps of a part's name, a channel and a share, and as ``cause`` the channel where
    each leaves the others, with its strongest ``patches`` where an atlas has them.

    Raises:
        NotThereError: the class does not exist.
        HookVizError: the network puts out no class scores, or can't be differentiated.
    """
    capture = capture_layer(subject, resolve(subject, view).step.layer)
    number_of_class = facts.get("class")
    count = 0 if capture.logits is None else len(capture.logits)
    if not count:
        raise HookVizError(say("This network puts out no class scores."))
    if not is_below(number_of_class, count):
        raise NotThereError(
            say(
                "{model} has no class {index}: its classes are 0 to {last}.",
                model=subject.model.title,
                index=written(number_of_class),
                last=count - 1,
            )
        )
    answer: Answer = subject.cached(
        "why",
        number_of_class,
        subject.colours.diverging,
        subject.atlas.digest if subject.atlas else "",
        compute=lambda: _reasons(subject, number_of_class, capture.label(number_of_class)),
        size=lambda each: len(each.data) + 300 * len(subject.trace.sequence),
    )
    return answer


def _reasons(subject: Subject, index: int, label: str) -> Answer:
    model, model_input = subject.model, subject.model_input
    with subject.take_turn(model.title, "why", "") as run:
        reporter = ProgressReporter(between_layers(run, model), 2)
        paths = class_paths(model, model_input, index, progress=reporter.within)
        reporter.step()
        shares = _shares(paths)

        def rank(at: ActivationKey, maps: Tensor) -> Tensor:
            found = shares.get(ActivationKey(at.layer, at.call))
            return (
                found if found is not None and len(found) == len(maps) else torch.zeros(len(maps))
            )

        found = strongest_maps(
            model,
            model_input,
            count=CHANNELS,
            size=small_size(model_input),
            rank=rank,
            progress=reporter.within,
        )
    maps, sprite, data = _pictured(subject, found)
    network = network_map(paths.trace, type(model.network).__name__)
    weighted = {
        name
        for name, module in model.network.named_modules()
        if any(True for _ in module.parameters(recurse=False))
    }
    ways = [_path_facts(subject, paths, way, weighted) for way in paths.channel_paths]
    return Answer(
        {
            "class": index,
            "name": label,
            "title": say("Why {label}?", label=label),
            "score": say("Score {score}", score=number(paths.score)),
            "because": _because(ways),
            "says": say(
                "What a channel passes on to the class is gradient × activation, summed over its "
                "cells. Its share is among the channels of its layer that speak for the class; a "
                "line is as wide as what goes along it."
            )
            if paths.channel_paths
            else say("No layer passes anything on to this class: gradient × activation is 0."),
            "limits": say(
                "It is the slope at this one image, not cause: a closed ReLU passes nothing on, "
                "and no channel was switched off."
            ),
            "source": "Shrikumar et al. 2017 · Molchanov et al. 2017",
            "blocks": _blocks(network, paths),
            "layers": {
                str(call): {
                    "channels": list(shown.strongest.channels),
                    "tile": shown.tile,
                    "shares": _strongest(shares[call]),
                }
                for call, shown in maps.items()
                if call in shares
            },
            "ways": ways,
            "sprite": sprite,
        },
        data,
    )


def _shares(paths: ClassPaths) -> Mapping[ActivationKey, Tensor]:
    """Return each channel's share by the call of its layer or block."""
    steps = paths.trace.steps
    calls = {steps[at - 1].address: each for at, each in paths.steps.items() if steps[at - 1].kind}
    return {at: shares_of(each) for at, each in (*paths.blocks.items(), *calls.items())}


def _blocks(network: Part, paths: ClassPaths) -> dict[str, list[list[Any]]]:
    """Return the share of each line, by names of blocks and parts."""
    shares = shares_along(network, paths.lines)
    lines: dict[str, list[list[Any]]] = {}

    def add(block: Part) -> None:
        names = {ENTRY: None, EXIT: None} | {
            index: str(part.address) for index, part in enumerate(block.parts)
        }
        lines[str(block.address) or "/"] = [
            [names[begin], names[end], round(share, 4)]
            for (begin, end), share in shares.get(block.address, {}).items()
            if share > _LEAST_SHARE
        ]
        for part in block.parts:
            if part.parts:
                add(part)

    add(network)
    return lines


def _because(ways: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence about the channels that speak most for the class."""
    causes = dict.fromkeys(
        say(
            "channel {channel} of {layer} ({share})",
            channel=cause["channel"],
            layer=cause["name"],
            share=cause["says"],
        )
        for cause in (each["cause"] for each in ways)
        if cause
    )
    return say("Because of {causes}.", causes=joined(causes)) if causes else ""


def _patches(subject: Subject, cause: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the strongest patches of a channel; none where the atlas lacks it."""
    atlas = atlas_of_step(subject, cause["name"])
    if atlas is None:
        return []
    try:
        patches = patches_of(subject.cache, atlas, cause["name"], cause["channel"])
    except HookVizError:  # the channel's own panel says why
        return []
    return [{"title": each.title, "picture": each.picture} for each in patches]


def _path_facts(
    subject: Subject, paths: ClassPaths, way: ChannelPath, weighted: Collection[str]
) -> dict[str, Any]:
    """Return a path's steps from the class on, each channel once: by the layer that made it.

    Its cause is the first step at which it leaves the other paths, by the layer with weights: a
    dropout, for example, counts the channels of several layers together.
    """
    runs: list[list[PathStep]] = []
    for step in way:
        if runs and runs[-1][0].channel == step.channel:
            runs[-1].append(step)
        else:
            runs.append([step])
    steps: list[dict[str, Any]] = []
    for run in reversed(runs):
        least = min(step.share for step in run)
        layers = (paths.trace.steps[step.step - 1] for step in run)
        address = next((each.address for each in layers if each.kind), None)
        if address is not None:  # a concatenation alone only counts them anew
            says = percent(least)
            channel = run[0].channel
            steps.append({"name": str(address), "channel": channel, "share": least, "says": says})
    first = next((at for at, step in enumerate(steps) if step["share"] < ALONE), None)
    if first is None:
        return {"cause": None, "patches": [], "steps": steps}
    maker = next((each for each in steps[first:] if each["name"] in weighted), steps[first])
    cause = {**maker, "says": steps[first]["says"]}
    return {"cause": cause, "patches": _patches(subject, cause), "steps": steps}


def _strongest(shares: Tensor) -> list[list[float]]:
    """Return the channels with the largest shares, as ``[channel, share]``."""
    values, channels = shares.sort(descending=True, stable=True)
    first = zip(channels.tolist()[:_MOST_CHANNELS], values.tolist(), strict=False)
    return [[channel, round(share, 4)] for channel, share in first if share > 0]
