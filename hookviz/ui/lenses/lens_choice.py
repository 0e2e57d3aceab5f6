"""Choose the lens to look through, and the layer at which it begins."""

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.explorer.layers import before
from hookviz.language.saying import say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.types import LayerInfo, Model
from hookviz.ui.link import restore_reverted, update_link
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.state import choose, warn_about_link

_LOOKED, _SURVEYED = "_looked", "_surveyed"  # which lens and model, and its layers, were shown last
CHANNELS = ""
"""The choice of no lens: the grid of channels and the explorer."""


def pick_lens() -> Lens | None:
    """Pick a lens by the question that it answers; None for the channels themselves."""
    lenses = {lens.slug: lens for lens in list_lenses()}
    asked = st.query_params.get("lens", CHANNELS)
    titles = {lens.title: slug for slug, lens in lenses.items()}
    if asked and asked not in lenses:
        by_title = titles.get(asked.rpartition(": ")[2])  # as links were written before
        if by_title is None:
            warn_about_link("lens", list(lenses))
        else:
            update_link(lens=by_title)
    chosen = linked_choice(
        st.selectbox,
        say("Look at"),
        {CHANNELS: say("Channels")}
        | {slug: f"{say(lens.question)} · {say(lens.title)}" for slug, lens in lenses.items()},
        "lens",
        first=CHANNELS,
        help=say("The channels themselves, or what else the hooks can show of this run."),
        on_pick=_look,
    )
    return lenses.get(chosen or CHANNELS)


def layers_for(lens: Lens, trace: LayerTrace) -> tuple[LayerInfo, ...]:
    """Return the layers that are offered at the side: those that the lens can be asked about."""
    choices = (parameter.choices(trace) for parameter in layers_at_side(lens))
    return next(choices, trace.convs)


def start_at(lens: Lens | None, model: Model, trace: LayerTrace) -> None:
    """Begin a lens at the layer that it is made for, unless a layer was chosen already.

    To be called before the widget that picks the layer.
    """
    slug = lens.slug if lens else CHANNELS
    before, now = st.session_state.get(_LOOKED), (slug, model.name)
    st.session_state[_LOOKED], st.session_state[_SURVEYED] = now, trace
    asked = st.query_params.get("layer")
    left_behind = before is not None and asked not in trace.calls  # by the model before
    if lens and before != now and (asked is None or left_behind):
        for parameter in layers_at_side(lens):
            choose(layer=parameter.start(trace))


def _look(slug: str | None) -> None:
    """Open a lens, or close all, together with the layer where that begins: one step for Back."""
    restore_reverted()
    trace: LayerTrace | None = st.session_state.get(_SURVEYED)
    if trace is None or not trace.layers:
        update_link(lens=slug)
        return
    lens = next((lens for lens in list_lenses() if lens.slug == slug), None)
    offered = [layer.name for layer in (layers_for(lens, trace) if lens else trace.maps)]
    every = [layer.name for layer in trace.layers]
    asked = st.query_params.get("layer")
    layer = asked if asked in trace.calls else next((conv.name for conv in trace.convs), None)
    at_side = layers_at_side(lens) if lens else []
    if "layer" not in st.query_params and at_side and offered:
        layer = at_side[0].start(trace)
    elif layer in every:
        layer = before(layer, every, offered)
    if layer not in offered:
        update_link(lens=slug)
        return
    if lens:
        st.session_state[_LOOKED] = (lens.slug, st.session_state[_LOOKED][1])
    choose(layer=layer)
    unsaid = offered[0] if lens else next((conv.name for conv in trace.convs), None)
    update_link(lens=slug, layer=None if layer == unsaid else layer)


def layers_at_side(lens: Lens) -> list[kinds.LayerChoice]:
    """Return the lens's layer parameter, where it is the one chosen at the side; else nothing."""
    return [
        parameter
        for parameter in lens.parameters
        if isinstance(parameter, kinds.LayerChoice)
        and parameter.name == "layer"
        and parameter.default != "none"
    ]
