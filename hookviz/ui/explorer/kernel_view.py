"""Show the kernel that made a channel: its slices, its strongest inputs, and its walk."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import kernel_picture
from hookviz.explaining import ranking
from hookviz.explaining.layer_call import LayerCall
from hookviz.language.saying import say
from hookviz.types import Address, LayerInfo, Model, Pixels
from hookviz.ui.components.walk import walk
from hookviz.ui.glossary import marked
from hookviz.ui.state import Cell, choose_channel, plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_MOST_LINKS = 6
_MOST_CHOICES = 64
_SIDE = 320  # pixels that a kernel in colour is magnified to, in whole steps


def show_kernel(model: Model, call: LayerCall, layer: LayerInfo, channel: int) -> None:
    """Show the channel's kernel: its slices, in colour where they are colours, and its norm."""
    kernel = call.kernel[channel].numpy()
    count, height, width = kernel.shape
    norm = float(np.sqrt(np.square(kernel, dtype=np.float64).sum()))
    st.markdown(
        marked(
            say(
                "{count:,} × {height} × {width} weights, one {height}×{width} slice for each of "
                "{input_channels}. Norm (root of the sum of squares): {norm}.",
                count=count,
                height=height,
                width=width,
                input_channels=_inputs(count, call.groups),
                norm=number(norm),
            )
        ),
        unsafe_allow_html=True,
    )
    slices, colours = st.columns([3, 1]) if _sees_colours(model, layer) else (st.container(), None)
    with slices:
        show_slices(kernel, say("The kernel's slices, one for each input channel"))
    if colours is not None:
        with colours:
            st.image(
                _in_colour(kernel),
                alt=say("The kernel of channel {channel} in colour.", channel=channel),
                width=220,
            )
            st.caption(say("the three slices as red, green and blue; grey is 0"))
    by_weight, by_contribution = st.columns(2, gap="medium")
    source = ranking.source_of(model, layer.name)
    with by_weight:
        st.caption(say("Inputs with the largest weights (norm of the slice):"))
        _show_links("weight", source, ranking.strongest_by_weight(call, channel))
    with by_contribution:
        st.caption(say("Inputs that add most to this very map (mean over its cells):"))
        _show_links("added", source, ranking.strongest_by_contribution(call, channel))
    if source is None:
        st.caption(
            say("They are the image's own channels.")
            if layer.index == 0
            else say(
                "Several maps were added or joined before this layer, so that its inputs are "
                "not the channels of one conv layer, and lead to none."
            )
        )


def show_walk(call: LayerCall, channel: int, cell: Cell) -> None:
    """Show the kernel walking over one of its inputs, step by step, from a cell on."""
    strongest = ranking.strongest_by_contribution(call, channel)[:_MOST_CHOICES]
    most = strongest[0][0]
    input_channel = st.selectbox(
        say("Input channel"),
        [index for index, _ in strongest],
        format_func=lambda name: (
            say("input {name}, which adds most", name=name)
            if name == most
            else say("input {name}", name=name)
        ),
        label_visibility="collapsed",
        width=240,
    )
    walk(call, channel, input_channel, cell, diverging())


def _inputs(count: int, groups: int) -> str:
    """Say which input channels a kernel has a slice for, in a layer of `groups` groups."""
    if groups == 1:
        return say("the {count:,} input channels", count=count)
    if count > 1:
        return say("its group’s {count:,} input channels", count=count)
    return say("its group’s {count:,} input channels (depthwise)", count=count)


def show_slices(values: NDArray[np.float32], says: str) -> None:
    """Show small maps in a row of tiles on one symmetric scale."""
    aspect = 4.0 if len(values) > 8 else float(len(values))  # a few stand in one row
    grid = make_grid(values, scale="symmetric", colormap=diverging(), aspect=aspect, width=640)
    st.image(grid.png(), width="stretch", alt=f"{says}. {grid.legend}")
    high = float(grid.limits.high[0])
    ends = say(
        "{title}; from {low_colour} {low_value} to {high_colour} {high_value}",
        title=says,
        low_colour=say(grid.colormap.low),
        low_value=number(-high),
        high_colour=say(grid.colormap.high),
        high_value=number(high),
    )
    st.caption(plain(ends))


def _sees_colours(model: Model, layer: LayerInfo) -> bool:
    """Return whether the layer's three inputs are the image's colours."""
    first = ranking.source_of(model, layer.name) is None and layer.index == 0
    return first and layer.input_shape[0] == 3 and layer.groups == 1


def _in_colour(kernel: NDArray[np.float32]) -> Pixels:
    """Draw a kernel ``(3, h, w)``, magnified, as RGB uint8; grey is 0, the largest |w| is full."""
    small = kernel_picture(kernel)
    step = max(1, _SIDE // max(small.shape[:2]))
    large: Pixels = small.repeat(step, 0).repeat(step, 1)
    return large


def _show_links(name: str, source: str | None, strongest: ranking.Ranking) -> None:
    """Show the first inputs of a ranking, each a button to that channel of the layer before."""
    with st.container(horizontal=True):
        for input_channel, amount in strongest[:_MOST_LINKS]:
            st.button(
                say(
                    "input {input_channel} · {amount}",
                    input_channel=input_channel,
                    amount=number(amount),
                ),
                key=f"{name} {input_channel}",
                disabled=source is None,
                help=say(
                    "channel {input_channel} of {source}",
                    input_channel=input_channel,
                    source=plain(source),
                )
                if source
                else None,
                on_click=_go_to,
                args=(source, input_channel),
            )


def _go_to(layer: str, channel: int) -> None:
    choose_channel(channel, Address.read(layer).layer)
