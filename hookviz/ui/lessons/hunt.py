"""Draw the hunt for a channel: what is sought, the one that was tried last, and the score."""

from functools import partial
from html import escape

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.language.saying import say
from hookviz.lessons.hunt import Hunt, read_hunt, written_hunt
from hookviz.lessons.maps import Map
from hookviz.lessons.part import LessonScene
from hookviz.lessons.parts.channels import HUNTED, matches
from hookviz.types import LayerInfo
from hookviz.ui.components.map import show_map
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.maps import grid_of, show_on_photograph
from hookviz.ui.lessons.picks import (
    pick,
    picked,
    picked_cell,
    remember_link,
    remember_shown,
)
from hookviz.ui.state import Cell

_HEIGHT = 260  # pixels of the grid
_STARS = 3


def show_hunt(
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
    remember_shown(key, {HUNTED: written_hunt(hunt)}, {HUNTED: ""})
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
        height=_HEIGHT,
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
