"""One cell of one map, down to the multiplications."""

from html import escape

import numpy as np
import streamlit as st

from hookviz.drawing.framing import outlined
from hookviz.explaining.cell_sum import CellSum, explain
from hookviz.explaining.layer_call import LayerCall, Step
from hookviz.explaining.receptive_field import ReceptiveField, receptive_fields
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.explorer.kernel_view import show_slices
from hookviz.ui.state import choose_cell, chosen_cell, plain
from hookviz.wording import number

_MOST_TERMS = 8  # input channels that are written out one by one


def show_cell(
    model: Model, model_input: ModelInput, layer: LayerInfo, call: LayerCall, channel: int
) -> None:
    """Where a cell's value comes from: what it sees, kernel × patch, + bias, and what followed."""
    _, rows, columns = layer.output_shape
    row, column = chosen_cell(rows, columns)
    cell = explain(call, channel, row, column)
    sees, sums = st.columns([2, 3], gap="medium")
    with sees:
        with st.container(horizontal=True):
            _coordinate("row", row, rows)
            _coordinate("column", column, columns)
        field = receptive_fields(model, tuple(model_input.tensor.shape[1:]))[layer.name]
        _show_field(model_input, field, row, column)
    with sums:
        _show_sum(cell)
        for step in cell.steps:
            st.markdown(f"→ {_step(step)}")
        strongest = np.array(cell.order[:_MOST_TERMS])
        show_slices(cell.kernel[strongest], "kernel, strongest input first")
        show_slices(cell.patch[strongest], "what lies under it in these inputs")


def _show_field(model_input: ModelInput, field: ReceptiveField, row: int, column: int) -> None:
    """The part of the input that the cell depends on, framed."""
    top, left, bottom, right = field.box(row, column)
    if model_input.picture is not None:
        picture = outlined(model_input.picture, (top, left, bottom, right))
        st.image(picture, width="stretch", alt="The cell's receptive field, framed on the input.")
    where = f"rows {top} to {bottom - 1} and columns {left} to {right - 1} of the input"
    size = f"{field.size[0]}×{field.size[1]} pixels" if field.size else "the whole image"
    outside = ", some of them outside the image" if _cut(field, top, left, bottom, right) else ""
    st.caption(f"receptive field: {size}{outside}; it depends on {where}")


def _cut(field: ReceptiveField, top: int, left: int, bottom: int, right: int) -> bool:
    return field.size is not None and (bottom - top, right - left) != field.size


def _coordinate(name: str, index: int, count: int) -> None:
    st.session_state[name] = index  # the link decides; a change of the number goes there first
    st.number_input(name.capitalize(), 0, count - 1, step=1, key=name, on_change=_move, width=140)


def _move() -> None:
    choose_cell((st.session_state["row"], st.session_state["column"]))


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
        f"<span>input {cell.inputs[index]}</span>"
        f'<span><span class="bar{" below" * bool(term < 0)}" '
        f'style="width:{abs(term) / most:.1%}"></span></span>'
        f'<span class="share">{escape(number(float(term)))}</span>'
        for index, term in ((index, cell.terms[index]) for index in cell.order[:_MOST_TERMS])
    )
    st.html(f'<div class="hv-predictions">{rows}</div>')
    if count > _MOST_TERMS:
        rest = float(sum(cell.terms[index] for index in cell.order[_MOST_TERMS:]))
        st.caption(plain(f"the other {count - _MOST_TERMS:,} inputs together: {number(rest)}"))


def _step(step: Step) -> str:
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
