"""Choose which layers are listed, and which of them is looked at."""

from collections.abc import Collection, Sequence

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.explorer.layers import before, list_of, why_another
from hookviz.explorer.view import LISTS
from hookviz.language.saying import mark, say
from hookviz.types import LayerInfo
from hookviz.ui.link import update_link
from hookviz.ui.state import choose, warn

_SEEN = "_layers"  # those that were looked at; a key that no widget has can't be set from outside
_TITLES = {"conv": mark("Conv"), "maps": mark("All maps")}


def pick_list(trace: LayerTrace) -> str:
    """Show the choice of `LISTS` above the tree, and return it; a link beyond convs chooses too."""
    convs = {layer.name for layer in trace.convs}
    asked = st.query_params.get("layer")
    listed = list_of(trace, asked, st.query_params.get("layers"))
    _show("_list", listed)
    st.segmented_control(
        say("Layers"),
        LISTS,
        format_func=lambda name: say(_TITLES[name]),
        required=True,
        key="_list",
        on_change=_list_chosen,
        args=(before(asked, tuple(trace.calls), convs),),
        disabled=not convs,
        label_visibility="collapsed",
        width="stretch",
        help=say("Conv layers, or whatever puts out maps: norms, activations, pooling, blocks."),
    )
    return listed


def _list_chosen(conv: str | None) -> None:
    """List other layers; beyond conv layers the one before is gone back to."""
    listed = st.session_state["_list"]
    choose(layers=listed, layer=conv if listed == "conv" else None)


def pick_layer(layers: Sequence[LayerInfo], trace: LayerTrace, listed: str | None) -> LayerInfo:
    """Show `layers` to pick from, and return one; `listed` is the list that they are, if any.

    A layer that runs but is not among them, because another lens offered it, leads to the one of
    them that returned last before it: of a block to the last of its parts.
    """
    by_name = {layer.name: layer for layer in layers}
    asked = st.query_params.get("layer")
    seen: set[str] = st.session_state.setdefault(_SEEN, set())
    is_gone = asked is not None and asked not in trace.calls
    if (is_gone or listed) and asked not in seen:  # and not where another model was chosen here
        warn(why_another(asked, trace, by_name))
    if is_gone:
        update_link(layer=None)
    name = before(asked, tuple(trace.calls), by_name) or layers[0].name
    seen.add(name)
    _show("layer", name)
    st.selectbox(
        say("Layer"),
        list(by_name),
        format_func=lambda option: f"{by_name[option].index + 1} · {option}",
        key="layer",
        on_change=_layer_chosen,
        args=(listed, tuple(by_name)),
        label_visibility="collapsed",
        width=300,
    )
    return by_name[name]


def _layer_chosen(listed: str | None, names: Collection[str]) -> None:
    # words of a list before may stand there, which another model left in the widget
    choose_layer(st.session_state["layer"], names, listed)


def choose_layer(name: str, names: Collection[str], listed: str | None) -> None:
    """Look at a layer, in a callback; one that is not among `names` changes nothing.

    The link keeps the list beside it that the names are of, if they are of one.
    """
    if name in names:
        choose(layer=name, layers="maps" if listed == "maps" else None)


def _show(key: str, value: str) -> None:
    """Set a widget to what is chosen in the URL."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value
