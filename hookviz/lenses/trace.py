"""The forward pass as a story: every call of a layer in order, where its input came from, its cost.

Tensors are followed through the pass. What a layer puts out comes from that call; what a function
between layers puts out, such as an addition or a concatenation, comes from all that its arguments
come from. A tensor is told by being the same object, so writing into a part of another tensor is
seen as writing into that part alone.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.drawing.panels import ChartPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import Telling, device_and_dtype, forward_pass, private_replica
from hookviz.hooking.torch_functions import EveryFunction, TensorMarks, not_followed, version
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.types import Address, Pixels
from hookviz.wording import number, times

_TIMED = 3  # passes; the first pass, which follows the tensors, warms up
_IMAGE = 0  # the network's input among the numbers of calls, which start at 1
_MOST_SOURCES = 6  # written out in a row of the table
_HEAD = ("call", "layer", "kind", "from", "input", "output", "ms", "time so far", "MB")
_INK, _GREY, _ACCENT, _JOIN = "#1a1a1a", "#b5b5b5", "#1f9a9d", "#c2603c"


@dataclass(slots=True)
class _Step:
    """One call of one layer.

    Attributes:
        address: which call of which layer.
        kind: the module's class.
        sources: the numbers of the calls whose outputs went into it; 0 is the network's input.
        takes, gives: shapes of its tensors, the batch included.
        nbytes: of what it put out.
        seconds: how long it took in each timed pass.
    """

    address: Address
    kind: str
    sources: frozenset[int]
    takes: str
    gives: str = ""
    nbytes: int = 0
    seconds: list[float] = field(default_factory=list)


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
    steps = _followed(subject)
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


def _followed(subject: Subject) -> list[_Step]:
    """The calls of one pass with their sources, and their times in the passes after it."""
    calls = sum(layer.calls for layer in subject.survey.layers)
    telling = Telling(subject.progress, (1 + _TIMED) * calls)
    with private_replica(subject.model) as replica:
        names = _outermost(replica)
        trace = _Trace(replica, telling)
        trace.know(subject.model_input.tensor, frozenset((_IMAGE,)))  # and so any copy of it
        with (
            hooks.before(replica, names, trace.before),
            hooks.edit(replica, names, trace.after),
            trace,
        ):
            forward_pass(subject.model, replica, subject.model_input.tensor, telling)
        clock = _Clock(trace.steps, telling, device_and_dtype(replica)[0])
        with (
            hooks.before(replica, names, clock.before),
            hooks.observe(replica, names, clock.after),
        ):
            for _ in range(_TIMED):
                clock.calls.clear()
                forward_pass(subject.model, replica, subject.model_input.tensor, telling)
    if not trace.steps:
        raise HookVizError(
            f"{subject.model.title} runs no layer. Every model of the catalog does, for "
            "example shapesnet."
        )
    return trace.steps


def _outermost(network: nn.Module) -> list[str]:
    """The layers without parts; of a convolution with parts, itself and not the parts."""
    leaves = layers.leaf_names(network)
    return [
        name
        for name in leaves
        if not any(name[:at] in leaves for at, sign in enumerate(name) if sign == ".")
    ]


class _Trace(EveryFunction):
    """Knows of every tensor on its way which calls' outputs it was made from."""

    def __init__(self, network: nn.Module, telling: Telling) -> None:
        super().__init__()
        self.steps: list[_Step] = []
        self._kinds = {name: type(module).__name__ for name, module in network.named_modules()}
        self._telling = telling
        self._sources = TensorMarks[frozenset[int]]()
        self._open: list[tuple[int, list[int]]] = []  # calls that run: numbers, inputs' versions

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives, known to come from all that its arguments come from."""
        given = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        versions = [version(tensor) for tensor in given]
        output = func(*args, **kwargs)
        sources = self._sources_of(given)
        written = [
            tensor
            for tensor, earlier in zip(given, versions, strict=True)
            if version(tensor) != earlier
        ]
        made = [
            tensor
            for _, tensor in hooks.tensors_in(output)
            if not any(tensor is other for other in given)
        ]
        for tensor in (*written, *made):
            self.know(tensor, sources)
        return output

    def before(self, call: hooks.Call) -> None:
        """Take in a call that is about to run."""
        with not_followed():
            given = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
            address, kind = Address(call.layer, call.index), self._kinds[call.layer]
            self.steps.append(_Step(address, kind, self._sources_of(given), _shapes(given)))
            self._open.append((len(self.steps), [version(tensor) for tensor in given]))

    def after(self, call: hooks.Call) -> Any:
        """Take in a call that has run."""
        self._telling.step()
        with not_followed():
            place, versions = self._open.pop()
            step = self.steps[place - 1]
            given = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
            made = [tensor for _, tensor in hooks.tensors_in(call.output)]
            step.gives = _shapes(made)
            step.nbytes = sum(tensor.nbytes for tensor in made)
            output = call.output
            untouched = [version(tensor) for tensor in given] == versions
            if untouched and any(output is tensor for tensor in given):
                # An Identity: the way on gets an object of its own, so that whatever else goes on
                # with the input is still known to come from before this call.
                output = output.detach()
                made = [output]
            for tensor in made:
                self.know(tensor, frozenset((place,)))
            return output

    def know(self, tensor: Tensor, sources: frozenset[int]) -> None:
        """From here on, this object comes from those calls."""
        self._sources[tensor] = sources

    def _sources_of(self, tensors: Sequence[Tensor]) -> frozenset[int]:
        return frozenset().union(*(self._sources.get(tensor) or () for tensor in tensors))


class _Clock:
    """Adds to each step how long its call takes.

    Attributes:
        calls: how many calls there have been in this pass.
    """

    def __init__(self, steps: Sequence[_Step], telling: Telling, device: torch.device) -> None:
        self._steps = {(step.address.layer, step.address.call): step for step in steps}
        self._telling = telling
        self._device = device
        self._started: list[float] = []
        self.calls: dict[str, int] = {}

    def before(self, _call: hooks.Call) -> None:
        """Start."""
        self._started.append(self._now())

    def after(self, call: hooks.Call) -> None:
        """Stop."""
        took = self._now() - self._started.pop()
        count = self.calls.get(call.layer, 0)
        self.calls[call.layer] = count + 1
        step = self._steps.get((call.layer, count))
        if step is not None:  # a network may take another way each time
            step.seconds.append(took)
        self._telling.step()

    def _now(self) -> float:
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)
        return time.perf_counter()


def _shapes(tensors: Sequence[Tensor]) -> str:
    return ", ".join(times(tensor.shape) or "one number" for tensor in tensors)


def _says(title: str, steps: Sequence[_Step], seconds: np.ndarray[Any, Any]) -> str:
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
    title: str, steps: Sequence[_Step], values: np.ndarray[Any, Any], unit: str
) -> ChartPanel:
    return ChartPanel(title, tuple(str(step.address) for step in steps), {unit: values}, unit=unit)


def _rows(
    steps: Sequence[_Step], seconds: np.ndarray[Any, Any]
) -> list[tuple[str | int | float, ...]]:
    so_far = np.nancumsum(seconds) / np.nansum(seconds)
    return [
        (
            place,
            str(step.address),
            step.kind,
            _written(step.sources),
            step.takes,
            step.gives,
            number(1e3 * float(took)),
            f"{100 * share:.1f} %",
            number(step.nbytes / 1e6),
        )
        for place, (step, took, share) in enumerate(zip(steps, seconds, so_far, strict=True), 1)
    ]


def _written(sources: frozenset[int]) -> str:
    names = ["image" if source == _IMAGE else str(source) for source in sorted(sources)]
    if len(names) > _MOST_SOURCES:
        return f"{', '.join(names[: _MOST_SOURCES - 1])}, … ({len(names)} in all)"
    return ", ".join(names) or "–"


def _arcs(steps: Sequence[_Step], edges: Sequence[tuple[int, int]]) -> ImagePanel:
    """The data flow as an arc diagram: calls beside one another, an arc for each way past others.

    Drawn from top to bottom and twice as large, then turned and made smaller.
    """
    fine = 2
    names = ["image", *(f"{step.address}  {place}" for place, step in enumerate(steps, 1))]
    joins = {to for to, step in enumerate(steps, 1) if len(step.sources) > 1}
    pitch = fine * max(4, min(24, 1200 // len(names)))
    every = ceil(fine * 12 / pitch)  # of the calls has room for its name
    font = ImageFont.load_default(size=fine * 11)
    left = fine * 12 + round(max(font.getlength(name) for name in names[::every]))
    top, dot = fine * 12, max(2, pitch // 6)
    longest = max((to - source for source, to in edges), default=1)
    reach = min(fine * 360, longest * pitch // 2)
    canvas = Image.new("RGB", (left + reach + top, 2 * top + len(steps) * pitch), "white")
    draw = ImageDraw.Draw(canvas)
    for source, to in edges:
        high, low = top + source * pitch, top + to * pitch
        if to - source == 1:
            draw.line((left, high, left, low), _GREY, fine)
        else:
            wide = reach * (to - source) // longest
            box = (left - wide, high, left + wide, low)
            draw.arc(box, -90, 90, _ACCENT, max(fine, pitch // 9))
    for place, name in enumerate(names):
        middle, colour = top + place * pitch, _JOIN if place in joins else _INK
        draw.ellipse((left - dot, middle - dot, left + dot, middle + dot), colour)
        if place % every == 0:
            draw.text((left - fine * 8, middle), name, colour, font, "rm")
    turned = canvas.transpose(Image.Transpose.ROTATE_90)
    picture: Pixels = np.asarray(turned.reduce(fine))
    skips = sum(to - source > 1 for source, to in edges)
    return ImagePanel(
        "The way of the data",
        picture,
        f"{len(steps)} calls in a row, and {skips} arc{'' if skips == 1 else 's'} between calls "
        "that do not follow one another.",
        "Each dot is a call of a layer, in order from left to right. An arc leads an output past "
        "other calls; where a dot is orange, several outputs come together.",
    )


LENS = Lens(
    slug="trace",
    title="Step by step",
    group="The network",
    sentence="One pass as a story: every call in order, where its input came from, what it costs.",
    run=run,
)
