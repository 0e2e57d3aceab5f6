"""Show why a cell has its value: the sum's largest products, each a button to its channel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from hookviz.explaining.cell_sum import CellSum
from hookviz.explaining.layer_call import Step
from hookviz.language.saying import say
from hookviz.ui.components.files import component, packed
from hookviz.ui.glossary import WORDS, pieces
from hookviz.wording import number

_ROWS = 5  # inputs that are written out one by one: as many as a laptop's window has room for


def why(
    cell: CellSum, upstream: str | None, colormap: str, on_upstream: Callable[[int], None]
) -> None:
    """Show the sum; `on_upstream` gets the input channel that a person follows upstream.

    Args:
        cell: the sum.
        upstream: the layer whose channels the inputs are; None where there is no one layer.
        colormap: a diverging one, for patches, kernels and bars.
        on_upstream: called with the number of the input channel.
    """

    def followed() -> None:
        match st.session_state["why"].get("upstream"):
            case int(channel):
                on_upstream(channel)

    data = packed(_data(cell, upstream, colormap))
    component("why")(key="why", data=data, on_upstream_change=followed)


def _data(cell: CellSum, upstream: str | None, colormap: str) -> dict[str, Any]:
    largest = cell.order[:_ROWS]
    bias = "" if cell.bias is None else say(" + bias {bias}", bias=number(cell.bias))
    others = cell.order[_ROWS:]
    rest = float(sum(cell.terms[index] for index in others))
    verdict = (
        say("as the network computed") if cell.agrees else say("NOT what the network computed")
    )
    return {
        "title": say(
            "Why {value} at row {row}, column {column}?",
            value=number(cell.value),
            row=cell.row,
            column=cell.column,
        ),
        "rows": [
            {
                "input": cell.inputs[index],
                "patch": _numbers(cell.patch[index]),
                "kernel": _numbers(cell.kernel[index]),
                "term": float(f"{cell.terms[index]:.8g}"),
            }
            for index in largest
        ],
        "most": _largest(cell.terms),
        "patchMost": _largest(cell.patch),
        "kernelMost": _largest(cell.kernel),
        "upstream": upstream,
        "colours": colormap,
        "rest": say(
            "the other {count:,} inputs together: {rest}",
            count=len(others),
            rest=number(rest),
        )
        if others
        else "",
        "sum": _explained(
            say(
                "sum {sum}{bias_term} = {total}, {verdict}",
                sum=number(float(cell.terms.sum())),
                bias_term=bias,
                total=number(cell.total),
                verdict=verdict,
            )
        ),
        "steps": [_explained(_step(step)) for step in cell.steps],
    }


def _explained(text: str) -> list[tuple[str, str]]:
    """Split the text, each part with the glossary's sentence if it is one of its words."""
    return [(part, WORDS.get(word, "")) for part, word in pieces(text)]


def _step(step: Step) -> str:
    """Return a step after the convolution, as a formula with its numbers."""
    title = f"{step.kind} {step.layer}".strip()
    if step.norm is None:
        return say("{title} gives {step}", title=title, step=number(step.value))
    norm = step.norm
    return say(
        "{title} (value − {mean}) / √({variance} + {epsilon:g}) × {scale} + {shift} = {step}",
        title=title,
        mean=number(norm.mean),
        variance=number(norm.variance),
        epsilon=norm.epsilon,
        scale=number(norm.scale),
        shift=number(norm.shift),
        step=number(step.value),
    )


def _largest(values: Any) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def _numbers(values: Any) -> list[list[float | None]]:
    """Return rows of numbers; None where there is no finite one, for JSON has no NaN."""
    return [[float(f"{v:.5g}") if np.isfinite(v) else None for v in row] for row in values.tolist()]
