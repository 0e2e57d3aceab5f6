"""Show the second row: which layer is looked at, what followed it, and its neighbours."""

import re
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.language.saying import mark, say
from hookviz.types import Address, LayerInfo
from hookviz.ui.explorer.layer_choice import choose_layer, pick_layer
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.state import plain

_BEFORE, _AFTER = mark("Previous"), mark("Next")


def show_layer(
    layers: Sequence[LayerInfo],
    trace: LayerTrace,
    listed: str | None,
    beside: Callable[[Address], None] | None = None,
) -> tuple[LayerInfo, Address]:
    """Show the row, and return the layer that is picked and whose output is shown.

    What is shown is the layer's own output, or that of a step that followed a conv layer. Where
    `layers` are those that a lens looks at, `listed` is None, and there is no such choice.
    `beside` draws what stands at the end of the row.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="hv-layer"):
        before = st.container(width="content")
        layer = pick_layer(layers, trace, listed)
        with before:
            _neighbour(_BEFORE, "chevron_left", "P", layers[: layer.index][-1:], listed)
        _neighbour(_AFTER, "chevron_right", "N", layers[layer.index + 1 :][:1], listed)
        step = Address(layer.name)
        if listed is not None:
            outputs = trace.map_outputs[layer.name]
            is_conv = any(conv.name == layer.name for conv in trace.convs)
            step = _pick_step(layer, trace) if is_conv else _pick_output(outputs)
        if beside is not None:
            beside(step)
    return layer, step


def _pick_step(layer: LayerInfo, trace: LayerTrace) -> Address:
    """Return the layer's own output, or what batch norm, activation or pooling made of it."""
    kinds = {info.name: info.kind for info in trace.layers}
    steps = {layer.kind: Address(layer.name)}
    for address in steps_after(trace, layer.name):
        steps[_unique_label(kinds[address.layer], steps)] = address
    if len(steps) == 1:
        return Address(layer.name)
    says = say("The layer's own output, or what the steps after it made of that.")
    return _switch(say("What is shown"), steps, "after", says)


def _pick_output(outputs: Sequence[Address]) -> Address:
    """Return which of a layer's or a block's maps is shown: of which call, of which part."""
    by_name = {_name(address): address for address in outputs}
    if len(by_name) == 1:
        return outputs[0]
    says = say("This layer runs several times in a pass, or puts out several tensors.")
    return _switch(say("Which output"), by_name, "output", says)


def _switch(label: str, outputs: Mapping[str, Address], key: str, hint: str) -> Address:
    """Show the outputs by name, and return one; the first where none is chosen."""
    first = next(iter(outputs))
    chosen = linked_choice(
        st.segmented_control,
        label,
        list(outputs),
        key,
        first=first,
        shown=_said,
        english={"default": first},
        required=True,
        label_visibility="collapsed",
        width="content",
        wrap=False,
        help=hint,
    )
    return outputs.get(chosen or first, outputs[first])


def _name(address: Address) -> str:
    """Name a call, counted from 1, and a part of what it returned, in few signs."""
    return " ".join((f"call {address.call + 1}", *address.path))


def _unique_label(kind: str, steps: Mapping[str, Address]) -> str:
    """Return the kind, numbered where there is one of it already."""
    name, number = kind, 2
    while name in steps:
        name, number = f"{kind} {number}", number + 1
    return name


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


def _said(name: str) -> str:
    """Return an output's name in the language that is spoken; links have it in English."""
    call = re.fullmatch(r"call (\d+)(.*)", name)
    return say("call {number}", number=int(call[1])) + call[2] if call else say(name)
