"""Explain where a channel's map comes from: a cell's sum, then kernel, walk or numbers."""

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.errors import HookVizError
from hookviz.explaining import ranking
from hookviz.explaining.cell_sum import explain_cell
from hookviz.explaining.layer_call import LayerCall
from hookviz.explaining.layer_description import describe_layer
from hookviz.explaining.layer_recorder import record_layer_call
from hookviz.language.saying import mark, say
from hookviz.types import Activation, LayerInfo, Model, ModelInput
from hookviz.ui.components.why import why
from hookviz.ui.explorer.inspector import show_numbers
from hookviz.ui.explorer.kernel_view import show_kernel, show_walk
from hookviz.ui.explorer.trail import follow
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import chosen_cell, plain
from hookviz.ui.theme import diverging

_KERNEL, _WALK, _NUMBERS = mark("Kernel"), mark("Walk"), mark("Numbers")


def show_origin(
    model: Model,
    model_input: ModelInput,
    layer: LayerInfo,
    grid: Grid,
    activation: Activation,
    *,
    channel: int,
) -> None:
    """Show the sum that made the chosen cell, then one more way of looking at the channel.

    Where the layer is no plain convolution, a sentence says so; of a layer without a kernel, what
    it does to its input.
    """
    if not layer.kernel_size:
        st.info(plain(describe_layer(model, layer)), icon=":material/arrow_forward:")
        show_numbers(grid, activation, channel)
        return
    call: LayerCall | None = None
    try:
        with st.container():  # whether it waits or not, what follows stays where it is
            call = _recorded(model, model_input, layer.name)
    except HookVizError as error:
        st.info(plain(str(error)))
    if call is not None:
        _, rows, columns = layer.output_shape
        upstream = ranking.source_of(model, layer.name)
        why(
            explain_cell(call, channel, *chosen_cell(rows, columns)),
            upstream,
            diverging(),
            lambda input_channel: follow(layer.name, channel, str(upstream), input_channel),
        )
    chosen = linked_choice(
        st.segmented_control,
        say("More about this channel"),
        (_KERNEL, _WALK, _NUMBERS) if call is not None else (_NUMBERS,),
        "origin",
        first=_NUMBERS,
        english={"default": _NUMBERS},
        required=True,
        label_visibility="collapsed",
        help=say("The kernel that made this map, its walk over the input, or the map in numbers."),
    )
    if call is not None and chosen == _KERNEL:
        show_kernel(model, call, layer, channel)
    elif call is not None and chosen == _WALK:
        show_walk(call, channel, chosen_cell(*call.output.shape[1:]))
    else:
        show_numbers(grid, activation, channel)


def _recorded(model: Model, model_input: ModelInput, layer: str) -> LayerCall:
    cache = resources.session_cache()
    key = ("call", model.name, model.digest, model_input.digest, layer)
    call: LayerCall | None = cache.get(key)
    if call is None:
        with (
            turn(say("Recording the input"), "input", model=model.name, layer=layer) as held,
            st.spinner(say("Recording what the layer was given…")),
            held.limit.over_torch(),
        ):
            call = record_layer_call(model, model_input, layer)
        cache.put(key, call, call.nbytes)
    return call
