"""Where a channel's map comes from: one cell multiplied out, the kernel, and the kernel's walk."""

import streamlit as st

from hookviz.errors import HookVizError
from hookviz.explaining.layer_call import LayerCall
from hookviz.explaining.layer_recorder import record_input
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.explorer.cell_view import show_cell
from hookviz.ui.explorer.kernel_view import show_kernel, show_walk
from hookviz.ui.serving import resources
from hookviz.ui.serving.turns import turn
from hookviz.ui.state import plain

_CELL, _KERNEL, _WALK = "One cell", "Kernel", "Walk"


def show_origin(model: Model, model_input: ModelInput, layer: LayerInfo, channel: int) -> None:
    """One way of looking at how the channel was computed, as chosen.

    Says so where the layer is no plain convolution.
    """
    chosen = st.segmented_control(
        "Where it comes from",
        (_CELL, _KERNEL, _WALK),
        default=_CELL,
        required=True,
        key="origin",
        bind="query-params",
        help="One cell multiplied out, the kernel that made this map, or its walk over the input.",
    )
    try:
        with st.container():  # whether it waits or not, what follows stays where it is
            call = _recorded(model, model_input, layer.name)
    except HookVizError as error:
        st.info(plain(str(error)))
        return
    if chosen == _KERNEL:
        show_kernel(model, call, layer, channel)
    elif chosen == _WALK:
        show_walk(call, channel)
    else:
        show_cell(model, model_input, layer, call, channel)


def _recorded(model: Model, model_input: ModelInput, layer: str) -> LayerCall:
    cache = resources.session_cache()
    key = ("call", model.name, model.digest, model_input.digest, layer)
    call: LayerCall | None = cache.get(key)
    if call is None:
        with (
            turn("Recording the input", "input", model=model.name, layer=layer),
            st.spinner("Recording what the layer was given…"),
        ):
            call = record_input(model, model_input, layer)
        cache.put(key, call, call.nbytes)
    return call
