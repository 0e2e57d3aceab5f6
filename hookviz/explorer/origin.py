"""Answer why a cell has its value, by the recorded call of its layer.

A cell is a sum, described with its largest products first, or a norm.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from torch import nn

from hookviz.errors import ModelError, SettingError
from hookviz.explaining.layers import ranking
from hookviz.explaining.layers.layer_call import CellSum, LayerCall, Step, explain_cell
from hookviz.explaining.layers.layer_description import describe_layer
from hookviz.explaining.layers.layer_recorder import (
    NormCall,
    NormedCell,
    explain_norm,
    record_layer_call,
    record_norm_call,
)
from hookviz.explorer.encoding import largest, rows_of_numbers
from hookviz.explorer.glossary import explained
from hookviz.explorer.layers import ResolvedView, maps, resolve
from hookviz.explorer.question import Answer, Report, asked_cell, asked_number
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import Cell, View
from hookviz.language.saying import mark, say
from hookviz.types import ActivationKey, LayerInfo, Model, ModelInput
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
_NORMED = mark(
    "({input_value} − {mean}) / √({variance} + {epsilon:g}) × {scale} + {shift} = {total}, "
    "{verdict}"
)


def explain(
    call: LayerCall | NormCall, channel: int, row: int, column: int
) -> CellSum | NormedCell:
    """Write one cell of a recorded call out, as the kind of layer that it is of allows.

    Raises:
        SettingError: the channel, row or column does not exist.
    """
    if isinstance(call, NormCall):
        return explain_norm(call, channel, row, column)
    return explain_cell(call, channel, row, column)


def described(cell: CellSum | NormedCell, upstream: str | None, colormap: str) -> dict[str, Any]:
    """Describe why a cell has its value: by its sum, or by its norm."""
    if isinstance(cell, NormedCell):
        return _cell_norm(cell, colormap)
    return cell_sum(cell, upstream, colormap)


def _cell_norm(cell: NormedCell, colormap: str) -> dict[str, Any]:
    """Describe why a layer norm's cell has its value: the mean, the deviation and the formula."""
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
                _NORMED,
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
    """Describe why a cell has its value: the largest products, the sum, and the steps after it.

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


_Call = TypeVar("_Call", LayerCall, NormCall)


class MapCell(NamedTuple):
    """Cell of a channel on a map of `rows` × `columns`."""

    channel: int
    row: int
    column: int
    rows: int
    columns: int

    def on(self, call: LayerCall | NormCall) -> tuple[int, int]:
        """Return row and column of the same place on what the layer itself put out.

        The map that is shown may be of a pooling that followed, and smaller.
        """
        rows, columns = call.output.shape[1:]
        return Cell(self.row, self.column, self.rows, self.columns).on(rows, columns)


def answer_cell(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer why a cell has its value: by its sum, and the steps after it.

    Only convolutions, linear layers and layer norms have sums; a sentence describes any other
    layer, or says why there is no sum.

    Raises:
        NotThereError: the channel or cell does not exist.
        HookVizError: the pass can't be run, or takes longer than one may.
    """
    resolved = resolve(subject, view)
    cell_on_map = cell_of_question(subject, resolved, facts)
    call = call_or_why_not(subject, resolved)
    if isinstance(call, str):
        return Answer(unexplained(call))
    layer = resolved.layer
    cell = explain(call, cell_on_map.channel, *cell_on_map.on(call))
    facts_of_cell = described(cell, upstream_of(subject, layer), subject.colours.diverging)
    has_kernel = isinstance(call, LayerCall)
    return Answer(facts_of_cell | {"hasKernel": has_kernel, "canWalk": bool(layer.kernel_size)})


def call_or_why_not(subject: Subject, resolved: ResolvedView) -> LayerCall | NormCall | str:
    """Return the layer's call; else a sentence about the layer, or why its cells are no sums.

    Raises:
        HookVizError: as `layer_call`, except for a layer without sums.
    """
    if resolved.layer.is_function:
        return describe_layer(subject.model, resolved.layer)
    module = subject.model.network.get_submodule(resolved.layer.name)
    is_norm = isinstance(module, nn.LayerNorm)
    if not (resolved.layer.kernel_size or is_norm or isinstance(module, nn.Linear)):
        return describe_layer(subject.model, resolved.layer)
    try:
        if is_norm:
            return _recorded(subject, resolved, "norm", record_norm_call)
        return layer_call(subject, resolved)
    except (SettingError, ModelError) as error:
        return str(error)


def cell_of_question(subject: Subject, resolved: ResolvedView, facts: Mapping[str, Any]) -> MapCell:
    """Return the channel and the cell that a question is about.

    Raises:
        NotThereError: they are not on the maps that are shown.
        HookVizError: the maps can't be recorded.
    """
    channels, rows, columns = maps(subject, resolved).shape
    channel = asked_number(facts, "channel", channels, resolved.step)
    return MapCell(channel, *asked_cell(facts, (rows, columns), resolved.step), rows, columns)


def layer_call(subject: Subject, resolved: ResolvedView) -> LayerCall:
    """Return the layer's call with its input, from the cache or recorded in a turn.

    Raises:
        SettingError: the layer is no ordinary convolution, nor a linear layer on maps.
        ModelError: its values can't be written as a sum.
        HookVizError: the pass takes longer than one may.
    """
    return _recorded(subject, resolved, "call", record_layer_call)


def _recorded(
    subject: Subject,
    resolved: ResolvedView,
    kind: str,
    make: Callable[[Model, ModelInput, str], _Call],
) -> _Call:
    name = resolved.layer.name

    def record() -> _Call:
        turn = subject.take_turn(say("Recording the input"), "input", name)
        with turn as run, run.limit.over_torch():
            recorded: _Call | None = subject.kept(kind, name)
            if recorded is not None:  # whoever had the turn before recorded it
                return recorded
            return make(subject.model, subject.model_input, name)

    call: _Call = subject.cached(kind, name, compute=record, size=lambda each: each.nbytes)
    return call


def upstream_of(subject: Subject, layer: LayerInfo) -> str | None:
    """Return the conv layer whose channels a conv layer's inputs are; None without any one."""
    if not layer.kernel_size:
        return None
    source = ranking.source_of(subject.model, layer.name)
    return None if source is None else ActivationKey.read(source).layer


def unexplained(text: str) -> dict[str, Any]:
    """Return the facts about a cell without a sum: a sentence."""
    return {"info": text, "hasKernel": False, "canWalk": False}
