"""The forward pass as a story: every call of a layer in order, where its input came from, its cost.

How tensors are followed, and calls timed, is in `hookviz.explaining.data_flow`.
"""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from hookviz.drawing.arc_diagram import arc_diagram
from hookviz.drawing.panels import ChartPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.explaining.data_flow import IMAGE, LayerStep, data_flow
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.wording import number

_MOST_SOURCES = 6  # written out in a row of the table
_HEAD = ("call", "layer", "kind", "from", "input", "output", "ms", "time so far", "MB")


def run(subject: Subject) -> LensOutput:
    """A row per call of a layer without parts, its time and output memory, and the data flow.

    The time of a call is the median of three passes after a first one, from just before its
    forward to just after; a call inside another one is part of that. Memory is the bytes of what
    it puts out, also where that takes the place of its input. Calls are numbered from 1 in
    `values["edges"]`, ``(E, 2)``, rows of (from, to); 0 is the network's input.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    steps = data_flow(subject.model, subject.model_input, subject.progress)
    seconds = np.array([statistics.median(step.seconds or [np.nan]) for step in steps])
    nbytes = np.array([step.nbytes for step in steps])
    edges = [(source, to) for to, step in enumerate(steps, 1) for source in sorted(step.sources)]
    panels: tuple[Panel, ...] = (
        TextPanel(_says(subject.model.title, steps, seconds)),
        _chart("Time of each call", steps, seconds * 1e3, "ms"),
        _chart("Memory of each call's output", steps, nbytes / 1e6, "MB"),
        _arcs(steps, edges),
        TablePanel(
            "Every call in order",
            _HEAD,
            tuple(_rows(steps, seconds)),
            "“from” names the calls whose outputs went in, directly or through functions between "
            "layers, such as additions; the time of those functions is not counted.",
        ),
    )
    return panels, {
        "edges": np.array(edges, np.int64).reshape(-1, 2),
        "bytes": nbytes,
        "seconds": seconds,
    }


def _says(title: str, steps: Sequence[LayerStep], seconds: np.ndarray[Any, Any]) -> str:
    whole = float(np.nansum(seconds))
    slowest = int(np.nanargmax(seconds))
    joins = sum(len(step.sources) > 1 for step in steps)
    joined = ""
    if joins:
        takes = "of them takes" if joins == 1 else "of them take"
        joined = f" {joins:,} {takes} in several outputs: there branches or shortcuts meet."
    elif all(step.sources == {at} for at, step in enumerate(steps)):
        joined = " Each takes in what the one before put out: there are no branches."
    return (
        f"{title} makes {len(steps):,} calls of its layers in one pass.{joined} Together they take "
        f"{number(1e3 * whole)} ms here; the slowest is {steps[slowest].address} with "
        f"{number(100 * float(seconds[slowest]) / whole)} % of that."
    )


def _chart(
    title: str, steps: Sequence[LayerStep], values: np.ndarray[Any, Any], unit: str
) -> ChartPanel:
    return ChartPanel(title, tuple(str(step.address) for step in steps), {unit: values}, unit=unit)


def _rows(
    steps: Sequence[LayerStep], seconds: np.ndarray[Any, Any]
) -> list[tuple[str | int | float, ...]]:
    so_far = np.nancumsum(seconds) / np.nansum(seconds)
    return [
        (
            call,
            str(step.address),
            step.kind,
            _written(step.sources),
            step.input_shapes,
            step.output_shapes,
            number(1e3 * float(took)),
            f"{100 * share:.1f} %",
            number(step.nbytes / 1e6),
        )
        for call, (step, took, share) in enumerate(zip(steps, seconds, so_far, strict=True), 1)
    ]


def _written(sources: frozenset[int]) -> str:
    names = ["image" if source == IMAGE else str(source) for source in sorted(sources)]
    if len(names) > _MOST_SOURCES:
        return f"{', '.join(names[: _MOST_SOURCES - 1])}, … ({len(names)} in all)"
    return ", ".join(names) or "–"


def _arcs(steps: Sequence[LayerStep], edges: Sequence[tuple[int, int]]) -> ImagePanel:
    """The data flow: calls beside one another, an arc for each way past others."""
    names = ["image", *(f"{step.address}  {call}" for call, step in enumerate(steps, 1))]
    joins = {to for to, step in enumerate(steps, 1) if len(step.sources) > 1}
    skips = sum(to - source > 1 for source, to in edges)
    return ImagePanel(
        "The way of the data",
        arc_diagram(names, edges, joins),
        f"{len(steps)} calls in a row, and {skips} arc{'' if skips == 1 else 's'} between calls "
        "that do not follow one another.",
        "Each dot is a call of a layer, in order from left to right. An arc leads an output past "
        "other calls; where a dot is orange, several outputs come together.",
    )


LENS = Lens(
    slug="trace",
    title="Step by step",
    question="What happens, step by step?",
    sentence="One pass as a story: every call in order, where its input came from, what it costs.",
    run=run,
)
