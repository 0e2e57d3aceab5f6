"""Describe the sum that made a cell, its largest products first, as numbers and sentences."""

from typing import Any

from hookviz.explaining.cell_sum import CellSum
from hookviz.explaining.layer_call import Step
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
        "title": say(
            "Why {value} at row {row}, column {column}?",
            value=number(cell.value),
            row=cell.row,
            column=cell.column,
        ),
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
