"""Follow a pass: the layer calls each input came from, the blocks they ran in, and their times.

What a layer puts out comes from that call; what a function between layers puts out, such as an
addition or a concatenation, comes from all that its arguments come from, and what is written into
comes from what is written too.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.charts import Chart, titled_figure
from hookviz.errors import HookVizError
from hookviz.hooking import hooks
from hookviz.hooking.attention_calls import memory_of
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.torch_functions import (
    EveryFunction,
    TensorMarks,
    function_name,
    not_followed,
    plain,
    version,
)
from hookviz.language.saying import joined, say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore
from hookviz.wording import times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE = 0
"""The network's input among the numbers of calls, which start at 1."""


@dataclass(slots=True)
class LayerStep:
    """One call of one layer: its sources, shapes, bytes and times.

    Attributes:
        address: which call of which layer; of a join the function and how often it was one.
        kind: the module's class; of a join empty.
        depth: how many calls of blocks it ran in.
        sources: the numbers of the calls whose outputs went into it; `IMAGE` is the input.
        input_shapes, output_shapes: of its tensors, the batch included, as people write them.
        nbytes: of what it put out, also where that takes the place of its input.
        seconds: from just before its forward to just after, in each timed pass; a call inside
            another one is part of that.
    """

    address: ActivationKey
    kind: str
    depth: int
    sources: frozenset[int]
    input_shapes: str
    output_shapes: str = ""
    nbytes: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(slots=True)
class BlockCall:
    """One call of a module with layers inside, such as ``layer1``.

    Attributes:
        address: which call of which block.
        kind: the module's class.
        depth: how many calls of other blocks it ran in.
        first, last: the numbers of the first and the last of its steps, counted from 1; where
            `last` is below `first` it ran none.
        input_shapes, output_shapes: of its tensors, the batch included, as people write them.
    """

    address: ActivationKey
    kind: str
    depth: int
    first: int
    input_shapes: str
    last: int = 0
    output_shapes: str = ""


class ProvenanceTracer(EveryFunction):
    """Follows which calls' outputs every tensor of a pass was made from."""

    def __init__(
        self, network: nn.Module, reporter: ProgressReporter, *, joins: bool = False
    ) -> None:
        super().__init__()
        self._joins = Counter[str]() if joins else None
        self.steps: list[LayerStep] = []
        self.blocks: list[BlockCall] = []
        self._kinds = {name: type(module).__name__ for name, module in network.named_modules()}
        self._reporter = reporter
        self._sources = TensorMarks[frozenset[int]]()
        self._open: list[tuple[int, list[int]]] = []  # running calls: numbers, inputs' versions
        self._open_blocks: list[BlockCall] = []

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, and note that its result comes from all that its arguments come from."""
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        versions = [version(tensor) for tensor in operands]
        output = func(*args, **kwargs)
        read = read_by(func, operands)
        sources = self.sources_of(read)
        written = [
            tensor
            for tensor, earlier in zip(operands, versions, strict=True)
            if version(tensor) != earlier
        ]
        new = [
            tensor
            for _, tensor in hooks.tensors_in(output)
            if not any(tensor is operand for operand in operands)
        ]
        made = (*written, *new)
        if made and self._is_join(read, sources):
            sources = self._join(func, operands, made, sources)
        for tensor in made:
            self.set_sources(tensor, sources)
        if written:
            self._mark_what_shares_memory(written, sources)
        return output

    def _mark_what_shares_memory(self, written: Sequence[Tensor], sources: frozenset[int]) -> None:
        """Note that what lies in the same memory comes from what was written there too."""
        if self._open:
            sources = frozenset((self._open[-1][0],))  # the layer that is running
        with not_followed():
            sizes = {memory_of(tensor): tensor.numel() for tensor in _ordinary(written)}
            others = [each for each in self._sources if not any(each[0] is one for one in written)]
            for tensor, before in others:
                size = sizes.get(memory_of(tensor) or -1)
                if size is not None:
                    whole = size >= tensor.numel()
                    self.set_sources(tensor, sources if whole else before | sources)

    def _is_join(self, operands: Sequence[Tensor], sources: frozenset[int]) -> bool:
        """Return whether a function brings branches together, outside of all layers."""
        if self._joins is None or self._open or len(sources) < 2:
            return False
        return all(self._sources.get(tensor) != sources for tensor in operands)

    def _join(
        self,
        func: Callable[..., Any],
        operands: Sequence[Tensor],
        made: Sequence[Tensor],
        sources: frozenset[int],
    ) -> frozenset[int]:
        """Make a step of a function that joins branches, and return what comes from it."""
        assert self._joins is not None
        name = function_name(func)
        address = ActivationKey(name, self._joins[name])
        self._joins[name] += 1
        with not_followed():
            taken, put_out = _shapes(operands), _shapes(made)
        step = LayerStep(address, "", len(self._open_blocks), sources, taken, put_out)
        self.steps.append(step)
        return frozenset((len(self.steps),))

    def before(self, call: hooks.Call) -> Any:
        """Open a step for a layer call that is about to run."""
        with not_followed():
            inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
            address, kind = ActivationKey(call.layer, call.index), self._kinds[call.layer]
            sources, depth = self.sources_of(inputs), len(self._open_blocks)
            self.steps.append(LayerStep(address, kind, depth, sources, _shapes(inputs)))
            self._open.append((len(self.steps), [version(tensor) for tensor in inputs]))

    def after(self, call: hooks.Call) -> Any:
        """Complete the step of a layer call that has run."""
        self._reporter.step()
        with not_followed():
            number, versions = self._open.pop()
            step = self.steps[number - 1]
            inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
            outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
            step.output_shapes = _shapes(outputs)
            step.nbytes = sum(tensor.nbytes for tensor in _ordinary(outputs))
            output = call.output
            untouched = [version(tensor) for tensor in inputs] == versions
            if untouched and any(output is tensor for tensor in inputs):
                # An Identity: the way on gets an object of its own, so that whatever else goes on
                # with the input is still known to come from before this call.
                output = output.clone() if output.requires_grad else output.detach()
                outputs = [output]
            for tensor in outputs:
                self.set_sources(tensor, frozenset((number,)))
            return output

    def enter(self, call: hooks.Call) -> Any:
        """Open a block call that is about to run."""
        with not_followed():
            shapes = _shapes([tensor for _, tensor in hooks.tensors_in(call.inputs)])
            address, kind = ActivationKey(call.layer, call.index), self._kinds[call.layer]
            block = BlockCall(address, kind, len(self._open_blocks), len(self.steps) + 1, shapes)
            self.blocks.append(block)
            self._open_blocks.append(block)

    def leave(self, call: hooks.Call) -> None:
        """Complete a block call that has run."""
        with not_followed():
            block = self._open_blocks.pop()
            outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
            if self._joins is not None and not any(
                step.kind for step in self.steps[block.first - 1 :]
            ):
                self._as_one_step(block, call, outputs)
            block.last = len(self.steps)
            block.output_shapes = _shapes(outputs)

    def _as_one_step(self, block: BlockCall, call: hooks.Call, outputs: Sequence[Tensor]) -> None:
        """Make a step of a block that called no layer, in place of the joins that ran in it."""
        assert self._joins is not None
        inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
        joins = self.steps[block.first - 1 :]
        sources = self.sources_of(inputs).union(*(join.sources for join in joins))
        del self.steps[block.first - 1 :]
        self._joins.subtract(join.address.layer for join in joins)
        outside = frozenset(number for number in sources if number < block.first)
        step = LayerStep(block.address, block.kind, block.depth, outside, block.input_shapes)
        step.output_shapes = _shapes(outputs)
        self.steps.append(step)
        made = [tensor for tensor, calls in self._sources if calls and max(calls) >= block.first]
        for tensor in (*made, *outputs):
            self.set_sources(tensor, frozenset((block.first,)))

    def set_sources(self, tensor: Tensor, sources: frozenset[int]) -> None:
        """Note that this tensor object comes from those calls."""
        self._sources[tensor] = sources

    def sources_of(self, tensors: Sequence[Tensor]) -> frozenset[int]:
        """Return the numbers of the calls that these tensors came from."""
        return frozenset().union(*(self._sources.get(tensor) or () for tensor in tensors))


def read_by(func: Callable[..., Any], operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the operands whose numbers a function reads, not those that only lend their shape."""
    name = function_name(func)
    if name.startswith("new_") or name.endswith("_like"):  # such as new_zeros and ones_like
        return operands[1:]
    return operands[:1] if name.endswith("_as") else operands  # such as expand_as


def _shapes(tensors: Sequence[Tensor]) -> str:
    return joined(times(tensor.shape) or say("one number") for tensor in _ordinary(tensors))


def _ordinary(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor for tensor in map(plain, tensors) if tensor is not None]


@dataclass(frozen=True, slots=True, repr=False)
class ExecutionTrace:
    """Layer and block calls of one pass.

    Attributes:
        steps: every call of a layer without parts, in order.
        blocks: every call of a module with layers inside but the network itself, in the order in
            which they begin.
        output: the numbers of the calls that the network's output came from.
    """

    steps: tuple[LayerStep, ...]
    blocks: tuple[BlockCall, ...]
    output: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        """Return how many calls there are, since the calls themselves fill pages."""
        return f"<ExecutionTrace: {len(self.steps)} layer calls, {len(self.blocks)} block calls>"

    @property
    def labels(self) -> tuple[str, ...]:
        """Address of each step, in words."""
        return tuple(step.address.in_words for step in self.steps)

    @property
    def edges(self) -> NDArray[np.int64]:
        """Rows of (from, to), ``(E, 2)``: numbers of calls from 1, and 0 for the input."""
        edges = [
            (source, to) for to, step in enumerate(self.steps, 1) for source in sorted(step.sources)
        ]
        return np.array(edges, np.int64).reshape(-1, 2)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Median time of each step over the timed passes, ``(steps,)``; NaN where it has none."""
        return np.array([statistics.median(step.seconds or [np.nan]) for step in self.steps])

    @property
    def nbytes(self) -> NDArray[np.int64]:
        """Bytes that each step put out, ``(steps,)``."""
        return np.array([step.nbytes for step in self.steps])

    def figure(self) -> "Figure":
        """Draw the time of each call as bars."""
        times = {"ms": 1e3 * self.seconds}
        return titled_figure(Chart(say("Time of each call"), self.labels, times, unit="ms"))


def follow_pass(
    model: Model,
    model_input: ModelInput,
    reporter: ProgressReporter | None = None,
    *,
    joins: bool = False,
) -> ExecutionTrace:
    """Follow every call of a layer without parts, and of a block, in one pass.

    `reporter` gets a step after every call. With `joins`, each function outside of layers that
    brings branches together, such as ``add``, is a step too, and so is a block that computes
    without calling a layer, such as `torch.nn.MultiheadAttention`.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    reporter = ProgressReporter(None) if reporter is None else reporter
    with private_replica(model) as replica:
        tracer = ProvenanceTracer(replica, reporter, joins=joins)
        return run_followed(tracer, model, replica, model_input.tensor, reporter)[0]


def run_followed(
    tracer: ProvenanceTracer,
    model: Model,
    replica: nn.Module,
    images: Tensor,
    reporter: ProgressReporter,
) -> tuple[ExecutionTrace, Any]:
    """Run a pass over `images`, and return its trace and what the network put out.

    Raises:
        HookVizError: the network runs no layer.
        ModelError: the network can't take this input.
    """
    names, blocks = layers_and_blocks(replica)
    tracer.set_sources(images, frozenset((IMAGE,)))  # and so any copy of it
    with (
        hooks.before(replica, names, tracer.before),
        hooks.edit(replica, names, tracer.after),
        hooks.before(replica, blocks, tracer.enter),
        hooks.observe(replica, blocks, tracer.leave),
        tracer,
    ):
        output = forward_pass(model, replica, images, reporter)
    if not tracer.steps:
        raise HookVizError(
            say(
                "{model} runs no layer. Every model of the catalog does, for example shapesnet.",
                model=model.title,
            )
        )
    returned = tracer.sources_of([tensor for _, tensor in hooks.tensors_in(output)])
    return ExecutionTrace(tuple(tracer.steps), tuple(tracer.blocks), returned), output


def layers_and_blocks(network: nn.Module) -> tuple[list[str], list[str]]:
    """Split module names into layers that have no layers inside, and modules that have.

    A block with weights of its own is traced by its parts; a convolution with parts, such as a
    weight norm, as the convolution.
    """
    names = layers.leaf_names(network)
    blocks = {name[:end] for name in names for end, sign in enumerate(name) if sign == "."}
    return [name for name in names if name not in blocks], sorted(blocks)


_TIMED = 3  # passes; the first pass, which follows the tensors, warms up


def trace_execution(
    model: Model, model_input: ModelInput, progress: Progress = ignore
) -> ExecutionTrace:
    """Trace every call of a layer without parts, and of a block, in one pass; time three more.

    Args:
        model: the model.
        model_input: what the network is given.
        progress: called with the share done after every call; what it raises ends the run.

    Raises:
        ModelError: the network can't take this input.
        HookVizError: it runs no layer.
    """
    calls = sum(layer.calls for layer in input_trace(model, model_input).layers)
    reporter = ProgressReporter(progress, (1 + _TIMED) * calls)
    traced = follow_pass(model, model_input, reporter)
    names = list(dict.fromkeys(step.address.layer for step in traced.steps))
    timer = _CallTimer(traced.steps, reporter, device_and_dtype(model.network)[0])
    for _ in range(_TIMED):
        timer.calls.clear()
        with (
            private_replica(model) as replica,
            hooks.before(replica, names, timer.before),
            hooks.observe(replica, names, timer.after),
        ):
            forward_pass(model, replica, model_input.tensor, reporter)
    return traced


class _CallTimer:
    """Measures how long each step's call takes, and adds it to the step.

    Attributes:
        calls: how many calls of each layer there have been in this pass.
    """

    def __init__(
        self, steps: Sequence[LayerStep], reporter: ProgressReporter, device: torch.device
    ) -> None:
        self._steps = {(step.address.layer, step.address.call): step for step in steps}
        self._reporter = reporter
        self._device = device
        self._started: list[float] = []
        self.calls: dict[str, int] = {}

    def before(self, _call: hooks.Call) -> None:
        self._started.append(self._now())

    def after(self, call: hooks.Call) -> None:
        took = self._now() - self._started.pop()
        count = self.calls.get(call.layer, 0)
        self.calls[call.layer] = count + 1
        step = self._steps.get((call.layer, count))
        if step is not None:  # a network may run other layers each time
            step.seconds.append(took)
        self._reporter.step()

    def _now(self) -> float:
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)
        return time.perf_counter()
