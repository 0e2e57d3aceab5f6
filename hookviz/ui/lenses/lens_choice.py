"""Choose a lens, and the layer with which it starts."""

from collections.abc import Mapping
from functools import partial

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


def pick_lens() -> Lens | None:
    """Show the buttons to the channels and to all lenses; return the lens in the link, if any."""
    lenses = {lens.slug: lens for lens in list_lenses()}
    chosen = st.query_params.get("lens", CHANNELS)
    if chosen and chosen not in (*lenses, ALL):
        titles = {lens.title: slug for slug, lens in lenses.items()}
        by_title = titles.get(chosen.rpartition(": ")[2])  # an old link has a title
        if by_title is None:
            warn_about_link("lens", list(lenses))
        update_link(lens=by_title)
        chosen = by_title or CHANNELS
    with st.container(horizontal=True, gap="small", key="hv-views"):
        for label, icon, lens in (
            (say("All channels"), "grid_view", CHANNELS),
            (say("All questions"), "category", ALL),
        ):
            if lens != CHANNELS or chosen != CHANNELS:
                st.button(
                    label,
                    icon=f":material/{icon}:",
                    key=f"hv-view-{lens or 'channels'}",
                    on_click=partial(update_link, lens=lens or None),
                    disabled=chosen == lens,
                    width="stretch",
                )
    return lenses.get(chosen)


def offer_list() -> None:
    """Show, on a phone, the button to all lenses beside the model's input."""
    st.button(
        say("All questions"),
        icon=":material/category:",
        key="hv-ask",
        on_click=partial(update_link, lens=ALL),
        width="content",
    )


def is_list() -> bool:
    """Return whether the link names the page of all lenses."""
    return st.query_params.get("lens") == ALL


def show_list(line: Mapping[str, str]) -> None:
    """Show a card for each lens, by group; a click goes to its lens.

    `line` has the ``path``, ``token`` and ``subject`` of requests for the cards' pictures.
    """
    groups = [
        {
            "title": say(group),
            "lenses": [_card(lens) for lens in list_lenses() if lens.group == group],
        }
        for group in GROUPS
    ]
    component("lens_cards")(
        key="lens-cards",
        data=packed({**line, "groups": groups}),
        on_opened_change=lambda: None,  # the page runs again, and that is all
    )


def _card(lens: Lens) -> dict[str, str]:
    words = {"question": lens.question, "title": lens.title, "sentence": lens.sentence}
    return {"slug": lens.slug} | {name: say(text) for name, text in words.items()}


def layers_for(lens: Lens, trace: LayerTrace) -> tuple[LayerInfo, ...]:
    """Return the layers that can be chosen for a lens at the side."""
    choices = (parameter.choices(trace) for parameter in layers_at_side(lens))
    return next(choices, trace.convs)


def begins_at(lens: Lens, trace: LayerTrace) -> str:
    """Return the layer with which a lens starts; empty without a certain one."""
    starts = (each.start(trace) for each in layers_at_side(lens) if each.choices(trace))
    return next(starts, "")


def warn_of_other_layer(lens: Lens, trace: LayerTrace, layer: str) -> None:
    """Tell the person that a lens uses `layer` in place of the chosen one, if it does."""
    chosen = word("layer")
    if chosen not in trace.recordable or chosen == layer or not layers_at_side(lens):
        return
    words = say(
        "{lens} can't look at {chosen}, and looks at {layer} before it. With the channels {chosen} "
        "is back.",
        lens=say(lens.title),
        chosen=chosen,
        layer=layer,
    )
    st.caption(f":material/info: {plain(words)}")


def layers_at_side(lens: Lens) -> list[kinds.LayerChoice]:
    """Return the lens's layer parameter if it is chosen at the side, or an empty list."""
    return [
        parameter
        for parameter in lens.parameters
        if isinstance(parameter, kinds.LayerChoice)
        and parameter.name == "layer"
        and parameter.default != "none"
    ]
