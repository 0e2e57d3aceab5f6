"""Describe what made a cell, a sum with its largest products first or a norm, in sentences."""

import math
from typing import Any

from hookviz.explaining.layers.layer_call import CellSum, LayerCall, Step, explain_cell
from hookviz.explaining.layers.norm_call import NormCall, NormedCell, explain_norm
from hookviz.explorer.encoding import largest, rows_of_numbers
from hookviz.explorer.glossary import explained
from hookviz.language.saying import mark, say
from hookviz.wording import number

ROWS = 5
"""Inputs that are written out one by one: as many as a laptop's window has room for."""

SUM = mark("sum {sum}{bias_term} = {total}, {verdict}")
BIAS = mark(" + bias {bias}")
AGREES, DIFFERS = mark("as the network computed"), mark("NOT what the network computed")
FOLLOWED = mark("{title} gives {step}")
NORMALISED = mark(
    "{title} (value − {mean}) / √({variance} + {epsilon:g}) × {scale} + {shift} = {step}"
)
NORMED = mark(
    "({input_value} − {mean}) / √({variance} + {epsilon:g}) × {scale} + {shift} = {total}, "
    "{verdict}"
)


def explain(
    call: LayerCall | NormCall, channel: int, row: int, column: int
) -> CellSum | NormedCell:
    """Write one cell of a recorded call out, as the kind of layer that it is of allows.

    Raises:
        SettingError: the layer has no such channel, row or column.
    """
    if isinstance(call, NormCall):
        return explain_norm(call, channel, row, column)
    return explain_cell(call, channel, row, column)


def described(cell: CellSum | NormedCell, upstream: str | None, colormap: str) -> dict[str, Any]:
    """Describe why a cell has its value, see `cell_sum` and `cell_norm`."""
    if isinstance(cell, NormedCell):
        return cell_norm(cell, colormap)
    return cell_sum(cell, upstream, colormap)


def cell_norm(cell: NormedCell, colormap: str) -> dict[str, Any]:
    """Describe why a layer norm's cell has its value: the mean, the deviation and the formula.

    Args:
        cell: the value, written out.
        colormap: as for `cell_sum`, which this has no use for.
    """
    norm = cell.norm
    return {
        "title": _why(cell),
        "rows": [],
        "most": 0.0,
        "patchMost": 0.0,
        "kernelMost": 0.0,
        "upstream": None,
        "colours": colormap,
        "rest": say(
            "The layer was given {input_value} here. The {count:,} numbers that it normalises "
            "together have the mean {mean} and the standard deviation {deviation}.",
            input_value=number(cell.given),
            count=cell.together,
            mean=number(norm.mean),
            deviation=number(math.sqrt(norm.variance)),
        ),
        "sum": explained(
            say(
                NORMED,
                input_value=number(cell.given),
                mean=number(norm.mean),
                variance=number(norm.variance),
                epsilon=norm.epsilon,
                scale=number(norm.scale),
                shift=number(norm.shift),
                total=number(cell.total),
                verdict=say(AGREES if cell.agrees else DIFFERS),
            )
        ),
        "steps": [],
    }


def cell_sum(cell: CellSum, upstream: str | None, colormap: str) -> dict[str, Any]:
    """Describe why a cell has its value: the largest products, the sum, and what followed it.

    Args:
        cell: the sum.
        upstream: the layer whose channels the inputs are; None where there is no one layer.
        colormap: name of a diverging one, for patches, kernels and bars.
    """
    first = cell.order[:ROWS]
    bias = "" if cell.bias is None else say(BIAS, bias=number(cell.bias))
    others = cell.order[ROWS:]
    rest = float(sum(cell.terms[index] for index in others))
    return {
        "title": _why(cell),
        "rows": [
            {
                "input": cell.inputs[index],
                "patch": rows_of_numbers(cell.patch[index]),
                "kernel": rows_of_numbers(cell.kernel[index]),
                "term": float(f"{cell.terms[index]:.8g}"),
            }
            for index in first
        ],
        "most": largest(cell.terms),
        "patchMost": largest(cell.patch),
        "kernelMost": largest(cell.kernel),
        "upstream": upstream,
        "colours": colormap,
        "rest": say(
            "the other {count:,} inputs together: {rest}",
            count=len(others),
            rest=number(rest),
        )
        if others
        else "",
        "sum": explained(
            say(
                SUM,
                sum=number(float(cell.terms.sum())),
                bias_term=bias,
                total=number(cell.total),
                verdict=say(AGREES if cell.agrees else DIFFERS),
            )
        ),
        "steps": [explained(_step(step)) for step in cell.steps],
    }


def _why(cell: CellSum | NormedCell) -> str:
    return say(
        "Why {value} at row {row}, column {column}?",
        value=number(cell.value),
        row=cell.row,
        column=cell.column,
    )


def _step(step: Step) -> str:
    """Return a step after the convolution, as a formula with its numbers."""
    title = f"{step.kind} {step.layer}".strip()
    if step.norm is None:
        return say(FOLLOWED, title=title, step=number(step.value))
    norm = step.norm
    return say(
        NORMALISED,
        title=title,
        mean=number(norm.mean),
        variance=number(norm.variance),
        epsilon=norm.epsilon,
        scale=number(norm.scale),
        shift=number(norm.shift),
        step=number(step.value),
    )
