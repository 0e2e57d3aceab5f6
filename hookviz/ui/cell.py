"""One cell of one map, down to the multiplications."""

from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz import arithmetic, ranking, render
from hookviz.arithmetic import CellSum, LayerCall
from hookviz.errors import HookVizError
from hookviz.scales import number
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui import resources
from hookviz.ui.state import choose, choose_cell, choose_channel, chosen_cell, plain

_MOST_TERMS = 8  # input channels that are written out one by one
_MOST_LINKS = 5


def show_cell(model: Model, made: ModelInput, layer: LayerInfo, channel: int) -> None:
    """Where a cell's value comes from: kernel × patch, input by input, + bias, and what followed.

    Says so where the layer is no plain convolution.
    """
    st.subheader("One cell, multiplied out", anchor=False)
    _, rows, columns = layer.output_shape
    row, column = chosen_cell(rows, columns)
    with st.container(horizontal=True):
        _coordinate("row", row, rows)
        _coordinate("column", column, columns)
    try:
        call = _recorded(model, made, layer.name)
        cell = arithmetic.explain(call, channel, row, column)
    except HookVizError as error:
        st.info(plain(str(error)))
        return
    _show_sum(cell)
    kernel, patch = st.columns(2, gap="medium")
    strongest = np.array(cell.order[:_MOST_TERMS])
    with kernel:
        _show_slices(cell.kernel[strongest], "kernel", "The kernel's slices for these inputs")
    with patch:
        _show_slices(cell.patch[strongest], "patch", "What lies under the kernel in these inputs")
    for step in cell.steps:
        st.markdown(f"→ {_step(step)}")
    _show_strongest(model, call, layer, channel)


def _show_strongest(model: Model, call: LayerCall, layer: LayerInfo, channel: int) -> None:
    """The inputs that add most to the whole map, each a way to that channel of the layer before."""
    st.caption("The inputs that add most to this whole map, on average over its cells:")
    source = ranking.source_of(model, layer.name)
    with st.container(horizontal=True):
        for number_of_input, added in ranking.strongest_by_contribution(call, channel)[
            :_MOST_LINKS
        ]:
            st.button(
                f"input {number_of_input} · {number(added)}",
                key=f"input {number_of_input}",
                disabled=source is None,
                help=f"channel {number_of_input} of {plain(source)}" if source else None,
                on_click=_go_to,
                args=(source, number_of_input),
            )


def _go_to(layer: str, channel: int) -> None:
    choose(layer=layer.partition("#")[0])
    choose_channel(channel)


def _coordinate(name: str, place: int, count: int) -> None:
    st.session_state[name] = place  # the link decides; a change of the number goes there first
    st.number_input(name.capitalize(), 0, count - 1, step=1, key=name, on_change=_move, width=140)


def _move() -> None:
    choose_cell((st.session_state["row"], st.session_state["column"]))


def _recorded(model: Model, made: ModelInput, layer: str) -> LayerCall:
    cache, key = resources.session_cache(), ("call", model.name, model.digest, made.digest, layer)
    call: LayerCall | None = cache.get(key)
    if call is None:
        with st.spinner("Recording what the layer was given…"):
            call = arithmetic.record_input(model, made, layer)
        cache.put(key, call, call.nbytes)
    return call


def _show_sum(cell: CellSum) -> None:
    """The sum in one line, then its largest terms as bars."""
    count = len(cell.terms)
    bias = "" if cell.bias is None else f" + bias {number(cell.bias)}"
    verdict = "which the sum gives too" if cell.agrees else "which the sum does NOT give"
    st.markdown(
        plain(
            f"Sum over {count:,} input channel{'s' * (count > 1)} of kernel × patch "
            f"{number(float(cell.terms.sum()))}{bias} = {number(cell.total)}. The network computed "
            f"{number(cell.value)}, {verdict} (they differ by {abs(cell.total - cell.value):.1e})."
        )
    )
    most = float(np.abs(cell.terms).max()) or 1.0
    rows = "".join(
        f"<span>input {cell.inputs[place]}</span>"
        f'<span><span class="bar{" below" * bool(term < 0)}" '
        f'style="width:{abs(term) / most:.1%}"></span></span>'
        f'<span class="share">{escape(number(float(term)))}</span>'
        for place, term in ((place, cell.terms[place]) for place in cell.order[:_MOST_TERMS])
    )
    st.html(f'<div class="hv-predictions">{rows}</div>')
    if count > _MOST_TERMS:
        rest = float(sum(cell.terms[place] for place in cell.order[_MOST_TERMS:]))
        st.caption(plain(f"the other {count - _MOST_TERMS:,} inputs together: {number(rest)}"))


def _show_slices(values: NDArray[np.float32], name: str, says: str) -> None:
    grid = render.make_grid(values, scale="symmetric", aspect=len(values), width=640)
    st.image(grid.png(), width="stretch", alt=f"{says}. {grid.legend}")
    st.caption(f"{name}, strongest input first · ±{number(float(grid.limits.high[0]))}")


def _step(step: arithmetic.Step) -> str:
    """What followed, as a formula with its numbers."""
    title = f"**{plain(step.kind)}** {plain(step.layer)}"
    if step.norm is None:
        return f"{title} gives {plain(number(step.value))}"
    norm = step.norm
    formula = (
        f"(value − {number(norm.mean)}) / √({number(norm.variance)} + {norm.epsilon:g}) "
        f"× {number(norm.scale)} + {number(norm.shift)} = {number(step.value)}"
    )
    return f"{title} {plain(formula)}"
