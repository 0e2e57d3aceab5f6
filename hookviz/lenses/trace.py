"""The forward pass as a story: every call of a layer in order, where its input came from, its cost.

How tensors are followed, and calls timed, is in `hookviz.explaining.execution_trace`.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hookviz.drawing.arc_diagram import arc_diagram
from hookviz.drawing.panels import ChartPanel, ImagePanel, Panel, TextPanel
from hookviz.drawing.tree_panel import TreePanel
from hookviz.explaining.execution_trace import (
    IMAGE,
    BlockCall,
    ExecutionTrace,
    LayerStep,
    trace_execution,
)
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.wording import number, percent

_MOST_SOURCES = 6  # written out in a row of the table
_HEAD = (
    *(
        mark("layer"),
        mark("kind"),
        mark("call"),
        mark("steps"),
        mark("from"),
        mark("input"),
        mark("output"),
    ),
    *(mark("ms"), mark("of all time"), mark("MB"), mark("of all memory")),
)


def run(subject: Subject) -> LensOutput:
    """A row per call of a layer without parts, its time and output memory, and the data flow.

    The rows stand in those of the blocks, such as ``layer1`` and ``layer1.0``, that the calls ran
    in; a block has the time and the memory of all its steps.

    The time of a call is the median of three passes after a first one, from just before its
    forward to just after; a call inside another one is part of that. Memory is the bytes of what
    it puts out, also where that takes the place of its input. Calls are numbered from 1 in
    `values["edges"]`, ``(E, 2)``, rows of (from, to); 0 is the network's input.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    flow = trace_execution(subject.model, subject.model_input, subject.progress)
    steps = flow.steps
    seconds = np.array([statistics.median(step.seconds or [np.nan]) for step in steps])
    nbytes = np.array([step.nbytes for step in steps])
    edges = [(source, to) for to, step in enumerate(steps, 1) for source in sorted(step.sources)]
    panels: tuple[Panel, ...] = (
        TextPanel(_says(subject.model.title, steps, seconds)),
        _tree(flow, seconds, nbytes),
        _chart(say("Time of each call"), steps, seconds * 1e3, "ms"),
        _chart(say("Memory of each call's output"), steps, nbytes / 1e6, "MB"),
        _arcs(steps, edges),
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
        takes = say("of them takes") if joins == 1 else say("of them take")
        joined = say(
            " {count:,} {verb} in several outputs: there branches or shortcuts meet.",
            count=joins,
            verb=takes,
        )
    elif all(step.sources == {at} for at, step in enumerate(steps)):
        joined = say(" Each takes in what the one before put out: there are no branches.")
    return say(
        "{title} makes {call_count:,} calls of its layers in one pass.{joins} "
        "Together they take {milliseconds} ms here; the slowest is {address} with {percent} "
        "% of that.",
        title=title,
        call_count=len(steps),
        joins=joined,
        milliseconds=number(1e3 * whole),
        address=steps[slowest].address,
        percent=number(100 * float(seconds[slowest]) / whole),
    )


def _chart(
    title: str, steps: Sequence[LayerStep], values: np.ndarray[Any, Any], unit: str
) -> ChartPanel:
    return ChartPanel(title, tuple(str(step.address) for step in steps), {unit: values}, unit=unit)


def _tree(
    flow: ExecutionTrace, seconds: np.ndarray[Any, Any], nbytes: np.ndarray[Any, Any]
) -> TreePanel:
    """The calls under those of the blocks that they ran in."""
    calls = list(_in_order(flow))
    return TreePanel(
        say("Every call in order"),
        _HEAD,
        tuple(
            (
                str(call.address),
                call.kind,
                f"{inside.start + 1}–{inside.stop}" if len(inside) > 1 else inside.stop,
                len(inside) if isinstance(call, BlockCall) else "",
                _written(_sources(flow.steps, inside)),
                call.input_shapes,
                call.output_shapes,
                *_cost(1e3 * seconds, inside),
                *_cost(nbytes / 1e6, inside),
            )
            for call, inside in calls
        ),
        say(
            "A block has the time and the memory of its steps. “from” names the calls "
            "whose outputs went in, directly or through functions between layers, such "
            "as additions; the time of those functions is not counted."
        ),
        tuple(call.depth for call, _ in calls),
    )


def _in_order(flow: ExecutionTrace) -> Iterator[tuple[LayerStep | BlockCall, range]]:
    """All calls, a block's before those inside, each with where its steps stand in `flow.steps`."""
    blocks = list(flow.blocks)
    for at, step in enumerate((*flow.steps, None)):
        while blocks and blocks[0].first == at + 1:
            block = blocks.pop(0)
            yield block, range(at, block.last)
        if step is not None:
            yield step, range(at, at + 1)


def _sources(steps: Sequence[LayerStep], inside: range) -> frozenset[int]:
    """The numbers of the calls before some steps that these take their inputs from."""
    every = frozenset[int]().union(*(steps[at].sources for at in inside))
    return frozenset(source for source in every if source <= inside.start)


def _cost(values: np.ndarray[Any, Any], inside: range) -> tuple[str, str]:
    """What some steps take, and their share of what all take."""
    took, whole = float(np.nansum(values[inside])), float(np.nansum(values))
    return number(took), percent(took / whole) if whole else "–"


def _written(sources: frozenset[int]) -> str:
    names = [say("image") if source == IMAGE else str(source) for source in sorted(sources)]
    if len(names) > _MOST_SOURCES:
        return say(
            "{sources}, … ({count} in all)",
            sources=", ".join(names[: _MOST_SOURCES - 1]),
            count=len(names),
        )
    return ", ".join(names) or "–"


def _arcs(steps: Sequence[LayerStep], edges: Sequence[tuple[int, int]]) -> ImagePanel:
    """The data flow: calls beside one another, an arc for each way past others."""
    names = ["image", *(f"{step.address}  {call}" for call, step in enumerate(steps, 1))]
    joins = {to for to, step in enumerate(steps, 1) if len(step.sources) > 1}
    skips = sum(to - source > 1 for source, to in edges)
    return ImagePanel(
        say("The way of the data"),
        arc_diagram(names, edges, joins),
        (
            say_count(
                "{call_count} calls in a row, and {arc_count} arc between calls that do not "
                "follow one another.",
                "{call_count} calls in a row, and {arc_count} arcs between calls that do not "
                "follow one another.",
                skips,
                call_count=len(steps),
                arc_count=skips,
            )
        ),
        say(
            "Each dot is a call of a layer, in order from left to right. An arc leads an "
            "output past other calls; where a dot is orange, several outputs come "
            "together."
        ),
    )


LENS = Lens(
    slug="trace",
    title=mark("Step by step"),
    question=mark("What happens, step by step?"),
    sentence=mark(
        "One pass as a story: every call in order, where its input came from, what it costs."
    ),
    run=run,
)
