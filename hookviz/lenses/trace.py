"""Show the forward pass as a story: every layer call in order, its sources and its cost.

How tensors are followed is in `hookviz.explaining.network_map.followed_pass`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import TENSORS_IN, in_order, innermost
from hookviz.drawing.charts import arc_diagram
from hookviz.drawing.panels import ChartPanel, ImagePanel, Panel, TextPanel, TreePanel
from hookviz.explaining.network_map.followed_pass import (
    IMAGE,
    BlockCall,
    ExecutionTrace,
    LayerStep,
    trace_execution,
)
from hookviz.language.saying import joined, mark, say, say_count
from hookviz.lenses.contract.lens import RIGHT, Lens, LensOutput, Preview, Subject
from hookviz.wording import number, percent

_MOST_SOURCES = 6  # written out in a row of the table
_HEAD = (
    *(mark("layer"), mark("kind"), mark("call"), mark("steps")),
    *(mark("from"), mark("input"), mark("output")),
    *(mark("ms"), mark("of all time"), mark("MB"), mark("of all memory")),
)


def run(subject: Subject) -> LensOutput:
    """List every call of a layer without parts, with its time, output memory and sources.

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
    steps, seconds, nbytes = flow.steps, flow.seconds, flow.nbytes
    panels: tuple[Panel, ...] = (
        TextPanel(_answer(steps, seconds), "answer"),
        TextPanel(_summarize(subject.model.title, steps, seconds)),
        _tree(flow, seconds, nbytes),
        _chart(say("Time of each call"), flow, seconds * 1e3, "ms"),
        _chart(say("Memory of each call's output"), flow, nbytes / 1e6, "MB"),
        _arcs(flow),
    )
    return panels, {"edges": flow.edges, "bytes": nbytes, "seconds": seconds}


def _answer(steps: Sequence[LayerStep], seconds: np.ndarray[Any, Any]) -> str:
    """Say in one sentence how long it takes, and what takes longest."""
    return say(
        "One pass takes {milliseconds} ms here; {address} takes longest.",
        milliseconds=number(1e3 * float(np.nansum(seconds))),
        address=steps[int(np.nanargmax(seconds))].address.in_words,
    )


def _summarize(title: str, steps: Sequence[LayerStep], seconds: np.ndarray[Any, Any]) -> str:
    whole = float(np.nansum(seconds))
    slowest = int(np.nanargmax(seconds))
    joins = sum(len(step.sources) > 1 for step in steps)
    branches = ""
    if joins:
        takes = say("of them takes") if joins == 1 else say("of them take")
        branches = say(
            " {count:,} {verb} in several outputs: there branches or shortcuts meet.",
            count=joins,
            verb=takes,
        )
    elif all(step.sources == {at} for at, step in enumerate(steps)):
        branches = say(" Each takes in what the one before put out: there are no branches.")
    return say(
        "{title} makes {call_count:,} calls of its layers in one pass.{joins} "
        "Together they take {milliseconds} ms here; the slowest is {address} with {percent} "
        "% of that.",
        title=title,
        call_count=len(steps),
        joins=branches,
        milliseconds=number(1e3 * whole),
        address=steps[slowest].address.in_words,
        percent=number(100 * float(seconds[slowest]) / whole),
    )


def _chart(title: str, flow: ExecutionTrace, values: np.ndarray[Any, Any], unit: str) -> ChartPanel:
    return ChartPanel(title, flow.labels, {unit: values}, unit=unit)


def _tree(
    flow: ExecutionTrace, seconds: np.ndarray[Any, Any], nbytes: np.ndarray[Any, Any]
) -> TreePanel:
    """Return a tree table of the calls, each under the blocks that it ran in."""
    calls = list(_in_order(flow))
    return TreePanel(
        say("Every call in order"),
        _HEAD,
        tuple(
            (
                call.address.in_words,
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
    """Yield all calls, a block's before those inside, each with the indices of its steps."""
    blocks = list(flow.blocks)
    for at, step in enumerate((*flow.steps, None)):
        while blocks and blocks[0].first == at + 1:
            block = blocks.pop(0)
            yield block, range(at, block.last)
        if step is not None:
            yield step, range(at, at + 1)


def _sources(steps: Sequence[LayerStep], inside: range) -> frozenset[int]:
    """Return the numbers of the earlier calls that these steps take their inputs from."""
    sources = frozenset[int]().union(*(steps[at].sources for at in inside))
    return frozenset(source for source in sources if source <= inside.start)


def _cost(values: np.ndarray[Any, Any], inside: range) -> tuple[str, str]:
    """Return what these steps take, and their share of what all take."""
    took, whole = float(np.nansum(values[inside])), float(np.nansum(values))
    return number(took), percent(took / whole) if whole else "–"


def _written(sources: frozenset[int]) -> str:
    names = [say("image") if source == IMAGE else str(source) for source in sorted(sources)]
    if len(names) > _MOST_SOURCES:
        return say(
            "{sources}, … ({count} in all)",
            sources=joined(names[: _MOST_SOURCES - 1]),
            count=len(names),
        )
    return joined(names) or "–"


def _arcs(flow: ExecutionTrace) -> ImagePanel:
    """Draw the data flow: the calls in a row, with an arc for each connection that skips others."""
    edges: list[tuple[int, int]] = [(source, to) for source, to in flow.edges.tolist()]
    names = ["image", *(f"{label}  {call}" for call, label in enumerate(flow.labels, 1))]
    joins = {to for to, step in enumerate(flow.steps, 1) if len(step.sources) > 1}
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
                call_count=len(flow.steps),
                arc_count=skips,
            )
        ),
        say(
            "Each dot is a call of a layer, in order from left to right. An arc leads an "
            "output past other calls; where a dot is orange, several outputs come "
            "together."
        ),
    )


def script(facts: LensFacts) -> LensCode:
    """Write the calls in order, followed in one pass and timed in three more."""
    return in_order(innermost(facts), TENSORS_IN, _FOLLOW, _TIME), {
        "edges": "np.array(edges, np.int64).reshape(-1, 2)",
        "bytes": "[step['bytes'] for step in steps]".replace("'", '"'),
        "seconds": "seconds",
    }


_FOLLOW = """
steps = []  # the calls of layers, numbered from 1; 0 is the network's input
sources = {}  # from a tensor's id to the numbers of the calls that it comes from
alive = []  # every tensor, so that no id is used twice


def know(tensor, numbers):
    alive.append(tensor)
    sources[id(tensor)] = numbers


def sources_of(tensors):
    return frozenset().union(*(sources.get(id(tensor), ()) for tensor in tensors))


class Follow(TorchFunctionMode):
    # Sees every torch function, also those between layers, such as additions: what it puts out
    # comes from all that its arguments come from.
    def __torch_function__(self, function, types, args=(), kwargs=None):
        operands = tensors_in((args, kwargs or {}))
        versions = [tensor._version for tensor in operands]
        output = function(*args, **(kwargs or {}))
        numbers = sources_of(operands)
        for tensor, version in zip(operands, versions, strict=True):
            if tensor._version != version:  # it was written into
                know(tensor, numbers)
        for tensor in tensors_in(output):
            if all(tensor is not operand for operand in operands):
                know(tensor, numbers)
        return output


def before(module, inputs, named):
    given = tensors_in((inputs, named))
    versions = [tensor._version for tensor in given]
    steps.append({"sources": sources_of(given), "given": given, "versions": versions})


def after(module, inputs, output):
    step = steps[-1]
    given, versions = step.pop("given"), step.pop("versions")
    step["bytes"] = sum(tensor.nbytes for tensor in tensors_in(output))
    if versions == [each._version for each in given] and any(output is each for each in given):
        output = output.detach()  # of an Identity: another object than the input
    for tensor in tensors_in(output):
        know(tensor, frozenset([len(steps)]))
    return output


handles = [each.register_forward_pre_hook(before, with_kwargs=True) for each in layers.values()]
handles += [each.register_forward_hook(after) for each in layers.values()]
know(batch, frozenset([0]))
with torch.no_grad(), Follow():
    model(batch)
for handle in handles:
    handle.remove()
edges = [(source, to) for to, step in enumerate(steps, 1) for source in sorted(step["sources"])]
"""
_TIME = """
# The time of each call, from just before its forward to just after: the median of three passes.
started, times = [], []


def start(module, inputs):
    started.append(time.perf_counter())


def stop(module, inputs, output):
    times.append(time.perf_counter() - started.pop())


for module in layers.values():
    module.register_forward_pre_hook(start)
    module.register_forward_hook(stop)
with torch.no_grad():
    for _ in range(3):
        model(batch)
seconds = np.median(np.reshape(times, (3, -1)), axis=0)"""


LENS = Lens(
    slug="trace",
    title=mark("Step by step"),
    question=mark("What does the network do, step by step?"),
    sentence=mark(
        "One pass as a story: every call in order, where its input came from, what it costs."
    ),
    group=RIGHT,
    preview=Preview(panel=1),
    run=run,
    script=script,
)
