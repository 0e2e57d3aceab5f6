"""The network as a table: every layer with its shapes, weights and multiply-adds."""

from collections.abc import Sequence

import numpy as np

from hookviz.drawing.panels import TablePanel, TextPanel
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import OneOf
from hookviz.types import LayerInfo
from hookviz.wording import times

_HEAD = ("layer", "kind", "kernel", "stride", "input", "output", "parameters", "multiply-adds")


def run(subject: Subject, *, layers: str) -> LensOutput:
    """One row per layer in order of execution.

    Shapes are those of one pass over this input; multiply-adds are `LayerInfo.multiply_adds` times
    the calls. A layer that runs twice counts its parameters once.
    """
    every = subject.survey.layers
    listed = subject.convs if layers == "convolutions" else every
    parameters = sum(parameter.numel() for parameter in subject.model.network.parameters())
    work = sum(layer.multiply_adds * layer.calls for layer in every)
    says = (
        f"{subject.model.title}: {len(every):,} layers, {len(subject.convs):,} of them "
        f"convolutions, {parameters:,} parameters, {work:,} multiply-adds for an input of "
        f"{times(subject.shape)}.{_outside(every, parameters)}"
    )
    table = TablePanel("Layers in order of execution", _HEAD, tuple(map(_row, listed)))
    numbers = {
        "parameters": np.array([layer.parameters for layer in listed]),
        "multiply_adds": np.array([layer.multiply_adds * layer.calls for layer in listed]),
    }
    return (TextPanel(says), table), numbers


def _outside(layers: Sequence[LayerInfo], parameters: int) -> str:
    """Why the rows' parameters do not add up to the network's, where they don't."""
    rows = sum(layer.parameters for layer in layers)
    if rows < parameters:
        return f" {parameters - rows:,} of its parameters belong to no layer that a pass runs."
    if rows > parameters:
        return f" {rows - parameters:,} parameters stand in two rows: layers share them."
    return ""


def _row(layer: LayerInfo) -> tuple[str | int, ...]:
    return (
        layer.name if layer.calls == 1 else f"{layer.name} ({layer.calls} calls)",
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
    title="Summary",
    question="What is it made of?",
    sentence="What the network is made of, layer by layer: shapes, weights and work.",
    run=run,
    parameters=(
        OneOf(
            name="layers",
            label="Layers",
            choices=("all", "convolutions"),
            help="Which rows the table has.",
        ),
    ),
)
