"""Answer why a cell has its value, by the layer's call as it was recorded once."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from torch import nn

from hookviz.errors import ModelError, SettingError
from hookviz.explaining.layers import ranking
from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.explaining.layers.layer_description import describe_layer
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explaining.layers.norm_call import NormCall, record_norm_call
from hookviz.explorer.asked import asked_cell, asked_number
from hookviz.explorer.cell_sum import described, explain
from hookviz.explorer.layers import Looked, maps, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import Cell, View
from hookviz.language.saying import say
from hookviz.types import ActivationKey, LayerInfo, Model, ModelInput

_Call = TypeVar("_Call", LayerCall, NormCall)


class Place(NamedTuple):
    """Cell of a channel, on the map that is shown.

    Attributes:
        channel, row, column: which it is.
        rows, columns: of that map.
    """

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
    """Answer why a cell has its value: the sum that made it, and what followed.

    Of another layer than a convolution, a linear layer or a layer norm, a sentence says what it
    does, or why there is no sum.

    Raises:
        NotThereError: there is no such channel or cell.
        HookVizError: the pass can't be run, or takes longer than one may.
    """
    looked = resolve(subject, view)
    place = asked_place(subject, looked, facts)
    call = call_or_why_not(subject, looked)
    if isinstance(call, str):
        return Answer(unexplained(call))
    layer = looked.layer
    cell = explain(call, place.channel, *place.on(call))
    said = described(cell, upstream_of(subject, layer), subject.colours.diverging)
    has_kernel = isinstance(call, LayerCall)
    return Answer(said | {"hasKernel": has_kernel, "canWalk": bool(layer.kernel_size)})


def call_or_why_not(subject: Subject, looked: Looked) -> LayerCall | NormCall | str:
    """Return the layer's call, or what the layer does, or why its cells are no sums.

    Raises:
        HookVizError: as `layer_call`, but where the layer is no such sum.
    """
    if looked.layer.is_function:
        return describe_layer(subject.model, looked.layer)
    module = subject.model.network.get_submodule(looked.layer.name)
    is_norm = isinstance(module, nn.LayerNorm)
    if not (looked.layer.kernel_size or is_norm or isinstance(module, nn.Linear)):
        return describe_layer(subject.model, looked.layer)
    try:
        return _norm_call(subject, looked) if is_norm else layer_call(subject, looked)
    except (SettingError, ModelError) as error:
        return str(error)


def asked_place(subject: Subject, looked: Looked, facts: Mapping[str, Any]) -> Place:
    """Return the channel and the cell that a question is about.

    Raises:
        NotThereError: they are not on the maps that are shown.
        HookVizError: the maps can't be recorded.
    """
    channels, rows, columns = maps(subject, looked).shape
    channel = asked_number(facts, "channel", channels, looked.step)
    return Place(channel, *asked_cell(facts, (rows, columns), looked.step), rows, columns)


def layer_call(subject: Subject, looked: Looked) -> LayerCall:
    """Return the layer's call with its input, from the cache or recorded in a turn.

    Raises:
        SettingError: the layer is no ordinary convolution, nor a linear layer on maps.
        ModelError: its values can't be written as a sum.
        HookVizError: the pass takes longer than one may.
    """
    return _recorded(subject, looked, "call", record_layer_call)


def _norm_call(subject: Subject, looked: Looked) -> NormCall:
    return _recorded(subject, looked, "norm", record_norm_call)


def _recorded(
    subject: Subject,
    looked: Looked,
    kind: str,
    make: Callable[[Model, ModelInput, str], _Call],
) -> _Call:
    name = looked.layer.name

    def record() -> _Call:
        turn = subject.take_turn(say("Recording the input"), "input", name)
        with turn as run, run.limit.over_torch():
            kept: _Call | None = subject.kept(kind, name)
            if kept is not None:  # whoever had the turn before recorded it
                return kept
            return make(subject.model, subject.model_input, name)

    call: _Call = subject.cached(kind, name, compute=record, size=lambda kept: kept.nbytes)
    return call


def upstream_of(subject: Subject, layer: LayerInfo) -> str | None:
    """Return the conv layer whose channels a conv layer's inputs are; None without any one."""
    if not layer.kernel_size:
        return None
    source = ranking.source_of(subject.model, layer.name)
    return None if source is None else ActivationKey.read(source).layer


def unexplained(text: str) -> dict[str, Any]:
    """Return what is said of a cell that no sum made: a sentence."""
    return {"info": text, "hasKernel": False, "canWalk": False}
