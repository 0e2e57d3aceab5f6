"""The network as a table: every layer with its shapes, weights and multiply-adds."""

from collections.abc import Sequence

import numpy as np

from hookviz.drawing.panels import TablePanel, TextPanel
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import OneOf
from hookviz.types import LayerInfo
from hookviz.wording import times

_HEAD = (
    mark("layer"),
    mark("kind"),
    mark("kernel"),
    mark("stride"),
    mark("input"),
    mark("output"),
    mark("parameters"),
    mark("multiply-adds"),
)


def run(subject: Subject, *, layers: str) -> LensOutput:
    """One row per layer in order of execution.

    Shapes are those of one pass over this input; multiply-adds are `LayerInfo.multiply_adds` times
    the calls. A layer that runs twice counts its parameters once.
    """
    every = subject.trace.layers
    listed = subject.convs if layers == "convolutions" else every
    parameters = sum(parameter.numel() for parameter in subject.model.network.parameters())
    work = sum(layer.multiply_adds * layer.calls for layer in every)
    says = say(
        "{model}: {layer_count:,} layers, {conv_count:,} of them convolutions, "
        "{parameters:,} parameters, {multiply_adds:,} multiply-adds for an input of "
        "{shape}.{note}",
        model=subject.model.title,
        layer_count=len(every),
        conv_count=len(subject.convs),
        parameters=parameters,
        multiply_adds=work,
        shape=times(subject.shape),
        note=_outside(every, parameters),
    )
    table = TablePanel(say("Layers in order of execution"), _HEAD, tuple(map(_row, listed)))
    numbers = {
        "parameters": np.array([layer.parameters for layer in listed]),
        "multiply_adds": np.array([layer.multiply_adds * layer.calls for layer in listed]),
    }
    return (TextPanel(says), table), numbers


def _outside(layers: Sequence[LayerInfo], parameters: int) -> str:
    """Why the rows' parameters do not add up to the network's, where they don't."""
    rows = sum(layer.parameters for layer in layers)
    if rows < parameters:
        return say(
            " {parameters:,} of its parameters belong to no layer that a pass runs.",
            parameters=parameters - rows,
        )
    if rows > parameters:
        return say(
            " {rows:,} parameters stand in two rows: layers share them.", rows=rows - parameters
        )
    return ""


def _row(layer: LayerInfo) -> tuple[str | int, ...]:
    return (
        layer.name
        if layer.calls == 1
        else say("{layer} ({calls} calls)", layer=layer.name, calls=layer.calls),
        layer.kind,
        times(layer.kernel_size),
        times(layer.stride),
        times(layer.input_shape),
        times(layer.output_shape),
        layer.parameters,
        layer.multiply_adds * layer.calls,
    )


LENS = Lens(
    slug="summary",
    title=mark("Summary"),
    question=mark("What is it made of?"),
    sentence=mark("What the network is made of, layer by layer: shapes, weights and work."),
    run=run,
    parameters=(
        OneOf(
            name="layers",
            label=mark("Layers"),
            choices=(mark("all"), mark("convolutions")),
            help=mark("Which rows the table has."),
        ),
    ),
)
