"""Show all channels of a layer, and find the one most like a kernel made by hand.

The page draws the channels as a grid, and the picked one below it: large, and on the photograph.
Where the lesson asks for a hunt, it shows the kernel to look for, the last try and its score.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.pictures import Resampling, kernel_picture, resize
from hookviz.explaining.layers.conv_kernels import conv_kernels
from hookviz.language.saying import localised, say
from hookviz.lessons.kernels import PRESETS, TITLES, same_size_map
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import STRONGEST, Map, channel_of, check_channel, correlation, maps_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import grey_of
from hookviz.types import LayerInfo, Pixels
from hookviz.ui.components.pictures import mosaic, show_map
from hookviz.ui.lessons.figures import grid_of, show_on_photograph
from hookviz.ui.lessons.picks import (
    pick,
    picked,
    picked_cell,
    picked_channel,
    remember_link,
    remember_options,
)
from hookviz.ui.state import Cell
from hookviz.wording import times

_CLOSEST = "closest"
"""What a lesson writes for the channel that is most alike to what it seeks."""

HUNTED = "hunted"
"""Among the options what was tried, as `written_hunt` has it; a lesson's file has none."""

_COLOURS = 3
_SIDE = 512  # cells of the picture that a kernel made by hand is slid over, at most


_KEPT = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5}){0,99})?(!?)")
_MOST_TRIES = 100  # that are kept, the last ones
STARS = ((3, 3), (6, 2))
"""At most so many tries for so many stars; whoever needs more has one."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """What a learner has tried among the channels of a layer.

    Attributes:
        likeness: how alike each channel is to what is sought, 0…1.
        tries: the channels that were tried, each once, in their order.
        given_up: whether the answer was asked for.
    """

    likeness: tuple[float, ...]
    tries: tuple[int, ...] = ()
    given_up: bool = False

    @property
    def best(self) -> int:
        """The channel that is most alike."""
        return max(range(len(self.likeness)), key=self.likeness.__getitem__)

    @property
    def is_found(self) -> bool:
        """Whether that channel, or one that is as alike, was tried."""
        return any(self.likeness[each] >= self.likeness[self.best] for each in self.tries)

    @property
    def is_over(self) -> bool:
        """Whether the answer may be seen."""
        return self.is_found or self.given_up

    @property
    def closest_so_far(self) -> int | None:
        """The channel most alike of those that were tried; None before the first."""
        return max(self.tries, key=self.likeness.__getitem__, default=None)

    @property
    def stars(self) -> int:
        """Stars for having found it, by the number of tries; none for an answer asked for."""
        if self.given_up or not self.is_found:
            return 0
        return next((stars for most, stars in STARS if len(self.tries) <= most), 1)

    def closer_than(self, channel: int) -> int:
        """Return how many channels are more alike than that one."""
        return sum(each > self.likeness[channel] for each in self.likeness)

    def trying(self, channel: int) -> "Hunt":
        """Return the hunt with another try; a channel counts once, and none when it is over."""
        if self.is_over or channel in self.tries:
            return self
        return Hunt(self.likeness, (*self.tries, channel)[-_MOST_TRIES:])

    def giving_up(self) -> "Hunt":
        """Return the hunt with the answer asked for; one that has it already is as it was."""
        return self if self.is_over else Hunt(self.likeness, self.tries, given_up=True)


def written_hunt(hunt: Hunt) -> str:
    """Return the tries as text for a link; see `read_hunt`."""
    return ".".join(map(str, hunt.tries)) + ("!" if hunt.given_up else "")


def read_hunt(text: str, likeness: Sequence[float]) -> Hunt:
    """Return the hunt of `written_hunt`; a fresh one where the text is anything else."""
    found = _KEPT.fullmatch(text)
    tries = tuple(map(int, found[1].split("."))) if found and found[1] else ()
    if found is None or any(each >= len(likeness) for each in tries):
        return Hunt(tuple(likeness))
    return Hunt(tuple(likeness), tuple(dict.fromkeys(tries)), given_up=bool(found[2]))


def sought(scene: LessonScene, name: str, size: tuple[int, ...]) -> Map:
    """Return the map that a kernel of `PRESETS` makes of the image, resized to a layer's maps."""
    return resize(
        same_size_map(PRESETS[name], grey_of(scene, _SIDE)), (size[0], size[1]), Resampling.BOX
    )


def _wanted_of(scene: LessonScene, options: Options, maps: Map) -> Map | None:
    """Return the map that the lesson seeks, as large as `maps`; None where it seeks none."""
    return sought(scene, options["seek"], maps.shape[1:]) if options["seek"] else None


def matches(maps: Map, wanted: Map) -> tuple[float, ...]:
    """Return how alike each channel's map is to the wanted one: |correlation|, 0…1.

    Its sign is left out: a channel that answers to the same edges with values below zero finds
    them as well.
    """
    return tuple(abs(correlation(channel_map, wanted)) for channel_map in maps)


def _picked_first(maps: Map, asked: str, wanted: Map | None) -> int:
    """Return the channel picked at first; `_CLOSEST` is the most alike to what is wanted."""
    if asked == _CLOSEST:
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


def _is_hunt(options: Options) -> bool:
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
    wanted = _wanted_of(scene, options, maps)
    facts["channel"] = _picked_first(maps, options["channel"], wanted)
    if wanted is not None:
        likeness = matches(maps, wanted)
        best = int(np.argmax(likeness))
        facts |= {
            "sought": say(TITLES[options["seek"]]),
            "best": best,
            "best_match": likeness[best],
            "middle_match": float(np.median(likeness)),
        }
        if _is_hunt(options):
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
            f"The one picked at first: a number, {STRONGEST}, or {_CLOSEST} to what is sought.",
            lambda value: "" if value == _CLOSEST else check_channel(value),
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


_HUNT_HEIGHT = 260  # pixels of the grid
_STARS = 3


def _show_hunt(
    scene: LessonScene, layer: LayerInfo, grid: Grid, maps: Map, wanted: Map, *, kind: str, key: str
) -> None:
    """Draw the grid, the score below it, what is sought and what was tried last.

    Args:
        scene: whose image.
        layer: whose channels.
        grid: of all of them.
        maps: of all of them, ``(C, H, W)``.
        wanted: the map that is sought, ``(H, W)``.
        kind: what it shows, in words.
        key: of the part.
    """
    of_this = f"{scene.model_input.digest[:8]} {layer.name} "  # elsewhere it is another hunt
    likeness = matches(maps, wanted)

    def hunted() -> Hunt:
        kept = picked(key, "hunt", "")
        return read_hunt(kept.removeprefix(of_this) if kept.startswith(of_this) else "", likeness)

    hunt = hunted()
    last = hunt.best if hunt.given_up else next(reversed(hunt.tries), None)
    remember_options(key, {HUNTED: written_hunt(hunt)}, {HUNTED: ""})
    remember_link(key, {"layer": layer.name} | ({} if last is None else {"channel": str(last)}))

    def keep(now: Hunt) -> None:
        pick(key, "hunt", of_this + written_hunt(now))

    def take(number: int, _at: Cell | None) -> None:
        keep(hunted().trying(number))  # those of now: a quick try comes before the last is drawn

    mosaic(
        grid,
        say("All channels of layer {layer}.", layer=layer.name),
        take,
        key=f"{key}-grid",
        height=_HUNT_HEIGHT,
        chosen=last,
    )
    score, ways = st.columns([2, 1], gap="small", vertical_alignment="center")
    with score:
        _show_score(hunt)
    with ways:
        if hunt.is_over:
            st.button(
                say("Hunt again"),
                icon=":material/replay:",
                key=f"{key}-again",
                on_click=partial(keep, Hunt(hunt.likeness)),
            )
        else:
            st.button(
                say("Give up and show it"),
                icon=":material/visibility:",
                key=f"{key}-give-up",
                type="tertiary",
                on_click=lambda: keep(hunted().giving_up()),
            )
    cell = picked_cell(key, wanted)
    take_cell = partial(pick, key, "cell")
    first, second, third = st.columns(3, gap="small", wrap=False)
    with first:
        st.caption(say("Sought: {kind}", kind=kind))
        show_map(grid_of(wanted[None]), 0, wanted, cell, take_cell, key=f"{key}-sought")
    if last is not None:
        with second:
            st.caption(say("Channel {channel}", channel=last))
            show_map(grid, last, maps[last], cell, take_cell, key=f"{key}-map")
        with third:
            st.caption(say("On the image"))
            show_on_photograph(scene, grid, last)


def _show_score(hunt: Hunt) -> None:
    """Say how alike the channel that was tried last is, the best so far, and what it is worth."""
    last = hunt.tries[-1] if hunt.tries else None
    closest = hunt.closest_so_far
    if hunt.given_up:
        words = say(
            "Given up: it is channel {channel}, alike by {match:.2f}. Tries: {tries}.",
            tries=len(hunt.tries),
            channel=hunt.best,
            match=hunt.likeness[hunt.best],
        )
    elif last is None or closest is None:
        words = say("Click the tile that you think is most like what is sought. Each tile counts.")
    elif hunt.is_found:
        words = say(
            "Found: channel {channel}, alike by {match:.2f}. Tries: {tries}.",
            channel=hunt.best,
            match=hunt.likeness[hunt.best],
            tries=len(hunt.tries),
        )
    else:
        words = say(
            "Alike by {match:.2f} of at most one; {others} channels come closer. Tries: {tries}. "
            "Best so far: {best:.2f}, channel {channel}.",
            match=hunt.likeness[last],
            others=hunt.closer_than(last),
            tries=len(hunt.tries),
            best=hunt.likeness[closest],
            channel=closest,
        )
    stars = ""
    if hunt.stars:
        told = say("{stars} of {most} stars", stars=hunt.stars, most=_STARS)
        signs = "★" * hunt.stars + "☆" * (_STARS - hunt.stars)
        stars = f'<span class="hv-hunt-stars" role="img" aria-label="{escape(told)}">{signs}</span>'
    share = 0.0 if last is None else hunt.likeness[hunt.best if hunt.given_up else last]
    found = "found" if hunt.is_over else ""
    st.html(
        f'<div class="hv-match hv-hunt {found}" role="status">{stars}{escape(words)}'
        f'<progress class="hv-hunt-bar" aria-hidden="true" value="{share:.3f}" max="1"></progress>'
        "</div>"
    )


_HEIGHT = 300  # pixels of the grid
_MAGNIFIED = 40  # pixels of the picture for each weight of a kernel


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the grid; below it what is sought, the picked channel, and its place on the image."""
    layer = layer_of(scene, options["layer"])
    maps = maps_of(scene, layer.name)
    grid = grid_of(maps, layer.name)
    wanted = _wanted_of(scene, options, maps)
    start = _picked_first(maps, options["channel"], wanted)
    if wanted is not None and _is_hunt(options):
        _show_hunt(scene, layer, grid, maps, wanted, kind=say(TITLES[options["seek"]]), key=key)
        return
    channel = picked_channel(key, len(maps), start)
    cell = picked_cell(key, maps[channel])
    remember_link(key, {"layer": layer.name, "channel": str(channel)})

    def take(number: int, at: Cell | None) -> None:
        pick(key, "channel", number)
        if at is not None:
            pick(key, "cell", at)

    mosaic(
        grid,
        say("All channels of layer {layer}.", layer=layer.name),
        take,
        key=f"{key}-grid",
        height=_HEIGHT,
        chosen=channel,
    )
    first, second, third = st.columns(3, gap="small", wrap=False)
    take_cell = partial(pick, key, "cell")
    with first if wanted is None else second:
        st.caption(say("Channel {channel}", channel=channel))
        show_map(grid, channel, maps[channel], cell, take_cell, key=f"{key}-map")
    with second if wanted is None else third:
        st.caption(say("On the image"))
        show_on_photograph(scene, grid, channel)
    if wanted is None:
        with third:
            _show_kernel(scene, layer, channel)
    else:
        with first:
            st.caption(say("Sought: {kind}", kind=say(TITLES[options["seek"]])))
            pictured = grid_of(wanted[None])
            show_map(pictured, 0, wanted, cell, take_cell, key=f"{key}-sought")
    if wanted is not None:
        _show_match(matches(maps, wanted), channel)


def _show_kernel(scene: LessonScene, layer: LayerInfo, channel: int) -> None:
    """Show the kernel in its colours, where it looks at colours."""
    kernel = kernel_in_colour(scene, layer, channel)
    if kernel is None:
        return
    st.caption(say("Its kernel; grey is zero"))
    st.image(
        kernel.repeat(_MAGNIFIED, 0).repeat(_MAGNIFIED, 1),
        width="stretch",
        alt=say("The kernel of channel {channel} in its colours.", channel=channel),
    )


def _show_match(likeness: tuple[float, ...], channel: int) -> None:
    """Say how alike the picked channel is to what is sought, and whether another is more so."""
    better = sum(match > likeness[channel] for match in likeness)
    words = say(
        "Alike to what is sought: {similarity:.2f} of at most one.", similarity=likeness[channel]
    )
    others = (
        say("Other channels that come closer: {count}.", count=better)
        if better
        else say("No other channel comes closer.")
    )
    st.html(f'<p class="hv-match {"" if better else "found"}" role="status">{words} {others}</p>')
