"""Show all channels of a layer, and find the one most like a kernel made by hand."""

from collections.abc import Mapping

import numpy as np

from hookviz.drawing.pictures import Resampling, kernel_picture, resize
from hookviz.explaining.layers.conv_kernels import conv_kernels
from hookviz.language.saying import localised, say
from hookviz.lessons.hunt import Hunt, read_hunt
from hookviz.lessons.kernels import PRESETS, TITLES, same_size_map
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import (
    STRONGEST,
    Map,
    channel_of,
    check_channel,
    correlation,
    maps_of,
)
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import grey_of
from hookviz.types import LayerInfo, Pixels
from hookviz.wording import times

CLOSEST = "closest"
"""What a lesson writes for the channel that is most alike to what it seeks."""

HUNTED = "hunted"
"""Among the options what was tried, as `written_hunt` has it; a lesson's file has none."""

_COLOURS = 3
_SIDE = 512  # cells of the picture that a kernel made by hand is slid over, at most


def sought(scene: LessonScene, name: str, size: tuple[int, ...]) -> Map:
    """Return the map that a kernel of `PRESETS` makes of the image, resized to a layer's maps."""
    return resize(
        same_size_map(PRESETS[name], grey_of(scene, _SIDE)), (size[0], size[1]), Resampling.BOX
    )


def wanted_of(scene: LessonScene, options: Options, maps: Map) -> Map | None:
    """Return the map that the lesson seeks, as large as `maps`; None where it seeks none."""
    return sought(scene, options["seek"], maps.shape[1:]) if options["seek"] else None


def matches(maps: Map, wanted: Map) -> tuple[float, ...]:
    """Return how alike each channel's map is to the wanted one: |correlation|, 0…1.

    Its sign is left out: a channel that answers to the same edges with values below zero finds
    them as well.
    """
    return tuple(abs(correlation(channel_map, wanted)) for channel_map in maps)


def picked_first(maps: Map, asked: str, wanted: Map | None) -> int:
    """Return the channel picked at first; `CLOSEST` is the most alike to what is wanted."""
    if asked == CLOSEST:
        return int(np.argmax(matches(maps, wanted))) if wanted is not None else 0
    return channel_of(maps, asked)


def kernel_in_colour(scene: LessonScene, layer: LayerInfo, channel: int) -> Pixels | None:
    """Return a channel's kernel as a picture, RGB uint8 ``(h, w, 3)``: 0 is middle grey.

    None where it does not look at three colours.
    """
    if layer.kind != "Conv2d":
        return None
    kernels = conv_kernels(scene.model, layer)
    return kernel_picture(kernels[channel]) if kernels.shape[1] == _COLOURS else None


def is_hunt(options: Options) -> bool:
    """Return whether the channel is to be found, and is hidden until then."""
    return bool(options["seek"]) and options["hunt"] == "yes"


def _hunted(hunt: Hunt) -> Mapping[str, Fact]:
    """Return the facts of a hunt; those that would give its answer away say that it is hidden."""
    best = f"{hunt.likeness[hunt.best]:.2f}"
    if hunt.is_found and not hunt.given_up:
        answer = say(
            "You found it: channel {channel}, alike by {match}.",
            channel=hunt.best,
            match=localised(best),
        )
    elif hunt.is_over:
        answer = say(
            "It is channel {channel}, alike by {match}.", channel=hunt.best, match=localised(best)
        )
    else:
        answer = say("Which one it is stands here once you have found it, or have given up.")
    hidden: dict[str, Fact] = {} if hunt.is_over else {"best": "…", "channel": "…"}
    return {**hidden, "answer": answer, "tries": len(hunt.tries), "stars": hunt.stars}


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, layer.name)
    facts: dict[str, Fact] = {
        "layer": layer.name,
        "channels": len(maps),
        "rows": maps.shape[1],
        "columns": maps.shape[2],
        "kernel": times(layer.kernel_size),
        "inputs": layer.input_shape[0] // layer.groups,
    }
    wanted = wanted_of(scene, options, maps)
    facts["channel"] = picked_first(maps, options["channel"], wanted)
    if wanted is not None:
        likeness = matches(maps, wanted)
        best = int(np.argmax(likeness))
        facts |= {
            "sought": say(TITLES[options["seek"]]),
            "best": best,
            "best_match": likeness[best],
            "middle_match": float(np.median(likeness)),
        }
        if is_hunt(options):
            facts |= _hunted(read_hunt(options.get(HUNTED, ""), likeness))
    return facts


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    layer = layer_of(scene, options["layer"])
    return {"layer": layer.name}


PART = Part(
    name="channels",
    sentence="All channels of a layer; a click on one shows it large and on the photograph, and "
    "with seek how alike it is to the map of a kernel made by hand.",
    options=(
        Option("layer", "first", "Whose channels."),
        Option(
            "channel",
            STRONGEST,
            f"The one picked at first: a number, {STRONGEST}, or {CLOSEST} to what is sought.",
            lambda value: "" if value == CLOSEST else check_channel(value),
        ),
        Option(
            "hunt",
            "no",
            "Whether what is sought is hunted for: tries are counted, and the answer is hidden "
            "until it is found or given up: yes or no.",
            choice(("yes", "no")),
        ),
        Option(
            "seek",
            "",
            f"The kernel whose map is sought among them, one of {', '.join(PRESETS)}.",
            lambda value: choice(PRESETS)(value) if value else "",
        ),
    ),
    facts=_facts,
    link=_link,
)
