"""Show the second row: which layer is looked at, what followed it, and its neighbours."""

from collections.abc import Sequence

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.explorer.layer_choices import step_choice
from hookviz.explorer.layers import Steps, steps_of
from hookviz.language.saying import mark, say
from hookviz.types import Address, LayerInfo
from hookviz.ui.explorer.layer_choice import choose_layer, pick_layer
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.state import plain

_BEFORE, _AFTER = mark("Previous"), mark("Next")


def show_layer(
    layers: Sequence[LayerInfo], trace: LayerTrace, listed: str | None
) -> tuple[LayerInfo, Address]:
    """Show the row, and return the layer that is picked and whose output is shown.

    What is shown is the layer's own output, or that of a step that followed a conv layer. Where
    `layers` are those that a lens looks at, `listed` is None, and there is no such choice.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="hv-layer"):
        before = st.container(width="content")
        layer = pick_layer(layers, trace, listed)
        with before:
            _neighbour(_BEFORE, "chevron_left", "P", layers[: layer.index][-1:], listed)
        _neighbour(_AFTER, "chevron_right", "N", layers[layer.index + 1 :][:1], listed)
        step = Address(layer.name) if listed is None else _pick_step(steps_of(trace, layer))
    return layer, step


def _pick_step(steps: Steps) -> Address:
    """Show what there is of a layer where that is several, and return one; else the first."""
    first, own = next(iter(steps.outputs.items()))
    choice = step_choice(steps, own)
    if choice is None:
        return own
    says = {option["value"]: option["says"] for option in choice["options"]}
    chosen = linked_choice(
        st.segmented_control,
        choice["label"],
        list(says),
        steps.word,
        first=first,
        shown=lambda name: says.get(name, name),
        english={"default": first},
        is_bound=False,  # the explorer, which a frozen frame opens, has the same choice
        required=True,
        label_visibility="collapsed",
        width="content",
        wrap=False,
        help=choice["hint"],
    )
    return steps.outputs.get(chosen or first, own)


def _neighbour(
    label: str, icon: str, key: str, neighbour: Sequence[LayerInfo], listed: str | None
) -> None:
    """Show the button to a neighbour, or to none at the end."""
    names = [layer.name for layer in neighbour]
    st.button(
        say(label),
        icon=f":material/{icon}:",
        key=f"hv-{label.lower()}",
        shortcut=key,
        disabled=not names,
        help=say("{neighbour} layer: {name}", neighbour=say(label), name=plain(names[0]))
        if names
        else None,
        on_click=choose_layer,
        args=(*names, names, listed),
    )
