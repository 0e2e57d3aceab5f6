"""Choose the lens to look through, and the layer at which it begins."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.language.saying import say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import GROUPS, Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.types import LayerInfo
from hookviz.ui.components.files import component, packed
from hookviz.ui.link import update_link, word
from hookviz.ui.state import plain, warn_about_link

CHANNELS = ""
"""What the link says for no lens: the grid of channels and the explorer."""
ALL = "all"
"""What the link says for the page of all lenses."""


def _lens_cards(line: Mapping[str, str], groups: Sequence[Mapping[str, Any]]) -> None:
    """Show groups of cards; a click on one goes to its lens by the link.

    Args:
        line: where pictures are asked for: ``path``, ``token`` and ``subject``.
        groups: each with its ``title`` and its ``lenses``: ``slug``, ``question``, ``title`` and
            ``sentence``.
    """
    component("lens_cards")(
        key="lens-cards",
        data=packed({**line, "groups": groups}),
        on_opened_change=_run,
    )


def _run() -> None:
    """Do nothing: the run of the page is what was asked for."""


def pick_lens() -> Lens | None:
    """Show the ways to the channels and to all lenses; return the one that is looked through."""
    lenses = {lens.slug: lens for lens in list_lenses()}
    asked = st.query_params.get("lens", CHANNELS)
    if asked and asked not in (*lenses, ALL):
        titles = {lens.title: slug for slug, lens in lenses.items()}
        by_title = titles.get(asked.rpartition(": ")[2])  # as links were written before
        if by_title is None:
            warn_about_link("lens", list(lenses))
        update_link(lens=by_title)
        asked = by_title or CHANNELS
    with st.container(horizontal=True, gap="small", key="hv-views"):
        if asked != CHANNELS:
            _way(say("All channels"), "grid_view", CHANNELS)
        _way(say("All questions"), "category", ALL, is_here=asked == ALL)
    return lenses.get(asked)


def _way(label: str, icon: str, lens: str, *, is_here: bool = False) -> None:
    """Show the button to a view, which can't be pressed where that is shown."""
    st.button(
        label,
        icon=f":material/{icon}:",
        key=f"hv-view-{lens or 'channels'}",
        on_click=partial(update_link, lens=lens or None),
        disabled=is_here,
        width="stretch",
    )


def offer_list() -> None:
    """Show, on a phone, the way to all lenses beside what the model sees."""
    st.button(
        say("All questions"),
        icon=":material/category:",
        key="hv-ask",
        on_click=partial(update_link, lens=ALL),
        width="content",
    )


def is_list() -> bool:
    """Return whether the page of all lenses is asked for."""
    return st.query_params.get("lens") == ALL


def show_list(line: Mapping[str, str]) -> None:
    """Show a card for each lens; `line` says where their pictures are asked for."""
    _lens_cards(
        line,
        [
            {
                "title": say(group),
                "lenses": [_card(lens) for lens in list_lenses() if lens.group == group],
            }
            for group in GROUPS
        ],
    )


def _card(lens: Lens) -> dict[str, str]:
    words = {"question": lens.question, "title": lens.title, "sentence": lens.sentence}
    return {"slug": lens.slug} | {name: say(text) for name, text in words.items()}


def layers_for(lens: Lens, trace: LayerTrace) -> tuple[LayerInfo, ...]:
    """Return the layers that are offered at the side: those that the lens can be asked about."""
    choices = (parameter.choices(trace) for parameter in layers_at_side(lens))
    return next(choices, trace.convs)


def begins_at(lens: Lens, trace: LayerTrace) -> str:
    """Return the layer that a lens is made for, where none is chosen; empty for no certain one."""
    starts = (each.start(trace) for each in layers_at_side(lens) if each.choices(trace))
    return next(starts, "")


def say_another(lens: Lens, trace: LayerTrace, shown: str) -> None:
    """Say that a lens looks at another layer than the one that was chosen, if it does."""
    chosen = word("layer")
    if chosen not in trace.recordable or chosen == shown or not layers_at_side(lens):
        return
    words = say(
        "{lens} can't look at {chosen}, and looks at {layer} before it. With the channels {chosen} "
        "is back.",
        lens=say(lens.title),
        chosen=chosen,
        layer=shown,
    )
    st.caption(f":material/info: {plain(words)}")


def layers_at_side(lens: Lens) -> list[kinds.LayerChoice]:
    """Return the lens's layer parameter, where it is the one chosen at the side; else nothing."""
    return [
        parameter
        for parameter in lens.parameters
        if isinstance(parameter, kinds.LayerChoice)
        and parameter.name == "layer"
        and parameter.default != "none"
    ]
