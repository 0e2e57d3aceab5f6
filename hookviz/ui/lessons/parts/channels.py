"""Show all channels of a layer, and find the one most similar to a kernel made by hand.

The picked channel is shown large and on the photograph. In a hunt the learner searches for the
channel, and sees the score of each try.
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
from hookviz.lessons.layers import (
    STRONGEST,
    Map,
    channel_of,
    check_channel,
    correlation,
    layer_of,
    maps_of,
)
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
"""Word of a lesson's file for the channel most similar to the kernel's map."""

HUNTED = "hunted"
"""Option that the page adds: the tries, in the format of `written_hunt`."""

_COLOURS = 3
_SIDE = 512  # cells of the kernel's map, at most


_TRIES = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5}){0,99})?(!?)")
_MOST_TRIES = 100  # the last ones
STARS = ((3, 3), (6, 2))
"""Most tries for a number of stars; more tries are one star."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """A learner's tries among the channels of a layer.

    Attributes:
        likeness: similarity of each channel to the kernel's map, 0…1.
        tries: the tried channels, each once, in their order.
        given_up: whether the learner gave up.
    """

    likeness: tuple[float, ...]
    tries: tuple[int, ...] = ()
    given_up: bool = False

    @property
    def best(self) -> int:
        """The most similar channel."""
        return max(range(len(self.likeness)), key=self.likeness.__getitem__)

    @property
    def is_found(self) -> bool:
        """Whether the most similar channel, or one as similar, was tried."""
        return any(self.likeness[each] >= self.likeness[self.best] for each in self.tries)

    @property
    def is_over(self) -> bool:
        """Whether the answer is visible."""
        return self.is_found or self.given_up

    @property
    def closest_so_far(self) -> int | None:
        """The most similar of the tried channels; None before the first."""
        return max(self.tries, key=self.likeness.__getitem__, default=None)

    @property
    def stars(self) -> int:
        """Stars by the number of tries; none before the end and after giving up."""
        if self.given_up or not self.is_found:
            return 0
        return next((stars for most, stars in STARS if len(self.tries) <= most), 1)

    def closer_than(self, channel: int) -> int:
        """Return the number of channels that are more similar."""
        return sum(each > self.likeness[channel] for each in self.likeness)

    def trying(self, channel: int) -> "Hunt":
        """Return the hunt with another try; a repeated or late one does not count."""
        if self.is_over or channel in self.tries:
            return self
        return Hunt(self.likeness, (*self.tries, channel)[-_MOST_TRIES:])

    def giving_up(self) -> "Hunt":
        """Return the hunt after giving up, or itself if it is over."""
        return self if self.is_over else Hunt(self.likeness, self.tries, given_up=True)


def written_hunt(hunt: Hunt) -> str:
    """Write the tries as text for a link; see `read_hunt`."""
    return ".".join(map(str, hunt.tries)) + ("!" if hunt.given_up else "")


def read_hunt(text: str, likeness: Sequence[float]) -> Hunt:
    """Read the text of `written_hunt`; another text is a hunt without tries."""
    match = _TRIES.fullmatch(text)
    tries = tuple(map(int, match[1].split("."))) if match and match[1] else ()
    if match is None or any(each >= len(likeness) for each in tries):
        return Hunt(tuple(likeness))
    return Hunt(tuple(likeness), tuple(dict.fromkeys(tries)), given_up=bool(match[2]))


def sought(scene: LessonScene, name: str, size: tuple[int, ...]) -> Map:
    """Return the map of a kernel of `PRESETS` on the image, resized to a layer's maps."""
    return resize(
        same_size_map(PRESETS[name], grey_of(scene, _SIDE)), (size[0], size[1]), Resampling.BOX
    )


def _wanted_of(scene: LessonScene, options: Options, maps: Map) -> Map | None:
    """Return the map of the lesson's kernel, as large as `maps`; None without a kernel."""
    return sought(scene, options["seek"], maps.shape[1:]) if options["seek"] else None


def matches(maps: Map, wanted: Map) -> tuple[float, ...]:
    """Return the similarity of each channel's map to the wanted one: |correlation|, 0…1.

    A channel with negative values at the same edges is as similar.
    """
    return tuple(abs(correlation(channel_map, wanted)) for channel_map in maps)


def _picked_first(maps: Map, asked: str, wanted: Map | None) -> int:
    """Return the first channel; for `_CLOSEST` the most similar to the wanted map."""
    if asked == _CLOSEST:
        return int(np.argmax(matches(maps, wanted))) if wanted is not None else 0
    return channel_of(maps, asked)


def kernel_in_colour(scene: LessonScene, layer: LayerInfo, channel: int) -> Pixels | None:
    """Return a channel's kernel as a picture, RGB uint8 ``(h, w, 3)``, with 0 as middle grey.

    Returns:
        None for a kernel without three input colours.
    """
    if layer.kind != "Conv2d":
        return None
    kernels = conv_kernels(scene.model, layer)
    return kernel_picture(kernels[channel]) if kernels.shape[1] == _COLOURS else None


def _is_hunt(options: Options) -> bool:
    """Return whether the lesson asks for a hunt."""
    return bool(options["seek"]) and options["hunt"] == "yes"


def _hunt_facts(hunt: Hunt) -> Mapping[str, Fact]:
    """Return the facts of a hunt, without its answer until it is over."""
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
            facts |= _hunt_facts(read_hunt(options.get(HUNTED, ""), likeness))
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


_HUNT_PX = 260  # height of the grid
_STARS = 3


def _show_hunt(
    scene: LessonScene, layer: LayerInfo, grid: Grid, maps: Map, wanted: Map, *, kind: str, key: str
) -> None:
    """Draw the grid, the score below it, the wanted map and the last try.

    Args:
        scene: the image.
        layer: the layer.
        grid: of the layer's channels.
        maps: of the channels, ``(C, H, W)``.
        wanted: the map of the kernel, ``(H, W)``.
        kind: of the kernel, in words.
        key: of the part.
    """
    prefix = f"{scene.model_input.digest[:8]} {layer.name} "  # of this hunt
    likeness = matches(maps, wanted)

    def hunt_now() -> Hunt:
        text = picked(key, "hunt", "")
        return read_hunt(text.removeprefix(prefix) if text.startswith(prefix) else "", likeness)

    hunt = hunt_now()
    last = hunt.best if hunt.given_up else next(reversed(hunt.tries), None)
    remember_options(key, {HUNTED: written_hunt(hunt)}, {HUNTED: ""})
    remember_link(key, {"layer": layer.name} | ({} if last is None else {"channel": str(last)}))

    def keep(now: Hunt) -> None:
        pick(key, "hunt", prefix + written_hunt(now))

    def take(number: int, _at: Cell | None) -> None:
        keep(hunt_now().trying(number))  # of the link, which a quick click has changed

    mosaic(
        grid,
        say("All channels of layer {layer}.", layer=layer.name),
        take,
        key=f"{key}-grid",
        height=_HUNT_PX,
        chosen=last,
    )
    score, button = st.columns([2, 1], gap="small", vertical_alignment="center")
    with score:
        _show_score(hunt)
    with button:
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
                on_click=lambda: keep(hunt_now().giving_up()),
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
    """Show the similarity of the last try, the best one so far, and the stars."""
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
        alt = say("{stars} of {most} stars", stars=hunt.stars, most=_STARS)
        signs = "★" * hunt.stars + "☆" * (_STARS - hunt.stars)
        stars = f'<span class="hv-hunt-stars" role="img" aria-label="{escape(alt)}">{signs}</span>'
    share = 0.0 if last is None else hunt.likeness[hunt.best if hunt.given_up else last]
    state = "found" if hunt.is_over else ""
    st.html(
        f'<div class="hv-match hv-hunt {state}" role="status">{stars}{escape(words)}'
        f'<progress class="hv-hunt-bar" aria-hidden="true" value="{share:.3f}" max="1"></progress>'
        "</div>"
    )


_GRID_PX = 300  # height
_WEIGHT_PX = 40


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the grid; below it the wanted map, the picked channel, and the channel on the image."""
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
        height=_GRID_PX,
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
            show_map(grid_of(wanted[None]), 0, wanted, cell, take_cell, key=f"{key}-sought")
        _show_match(matches(maps, wanted), channel)


def _show_kernel(scene: LessonScene, layer: LayerInfo, channel: int) -> None:
    """Show the kernel in its colours, if it has three inputs."""
    kernel = kernel_in_colour(scene, layer, channel)
    if kernel is None:
        return
    st.caption(say("Its kernel; grey is zero"))
    st.image(
        kernel.repeat(_WEIGHT_PX, 0).repeat(_WEIGHT_PX, 1),
        width="stretch",
        alt=say("The kernel of channel {channel} in its colours.", channel=channel),
    )


def _show_match(likeness: tuple[float, ...], channel: int) -> None:
    """Show the picked channel's similarity, and the number of more similar ones."""
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
