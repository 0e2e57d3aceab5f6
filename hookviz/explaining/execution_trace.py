"""Trace a pass: where each layer call's input came from, in which blocks it ran, how long it takes.

Tensors are followed through the pass. What a layer puts out comes from that call; what a function
between layers puts out, such as an addition or a concatenation, comes from all that its arguments
come from. A tensor is recognised as the same object, so writing into a part of another tensor is
seen as writing into that part alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import HookVizError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.plain_tensors import plain
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.torch_functions import EveryFunction, TensorMarks, not_followed, version
from hookviz.language.saying import say
from hookviz.types import Address, Model, ModelInput, Progress, ignore
from hookviz.wording import times

IMAGE = 0
"""The network's input among the numbers of calls, which start at 1."""

_TIMED = 3  # passes; the first pass, which follows the tensors, warms up


@dataclass(slots=True)
class LayerStep:
    """One call of one layer: its sources, shapes, bytes and times.

    Attributes:
        address: which call of which layer.
        kind: the module's class.
        depth: how many calls of blocks it ran in.
        sources: the numbers of the calls whose outputs went into it; `IMAGE` is the input.
        input_shapes, output_shapes: of its tensors, the batch included, as people write them.
        nbytes: of what it put out, also where that takes the place of its input.
        seconds: from just before its forward to just after, in each timed pass; a call inside
            another one is part of that.
    """

    address: Address
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

    address: Address
    kind: str
    depth: int
    first: int
    input_shapes: str
    last: int = 0
    output_shapes: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionTrace:
    """Layer and block calls of one pass.

    Attributes:
        steps: every call of a layer without parts, in order.
        blocks: every call of a module with layers inside but the network itself, in the order in
            which they begin.
    """

    steps: tuple[LayerStep, ...]
    blocks: tuple[BlockCall, ...]


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
    with private_replica(model) as replica:
        names, blocks = _layers_and_blocks(replica)
        tracer = _ProvenanceTracer(replica, reporter)
        tracer.set_sources(model_input.tensor, frozenset((IMAGE,)))  # and so any copy of it
        with (
            hooks.before(replica, names, tracer.before),
            hooks.edit(replica, names, tracer.after),
            hooks.before(replica, blocks, tracer.enter),
            hooks.observe(replica, blocks, tracer.leave),
            tracer,
        ):
            forward_pass(model, replica, model_input.tensor, reporter)
    timer = _CallTimer(tracer.steps, reporter, device_and_dtype(model.network)[0])
    for _ in range(_TIMED):
        timer.calls.clear()
        with (
            private_replica(model) as replica,
            hooks.before(replica, names, timer.before),
            hooks.observe(replica, names, timer.after),
        ):
            forward_pass(model, replica, model_input.tensor, reporter)
    if not tracer.steps:
        raise HookVizError(
            say(
                "{model} runs no layer. Every model of the catalog does, for example shapesnet.",
                model=model.title,
            )
        )
    return ExecutionTrace(tuple(tracer.steps), tuple(tracer.blocks))


def _layers_and_blocks(network: nn.Module) -> tuple[list[str], list[str]]:
    """Split module names into layers that have no layers inside, and modules that have.

    A block with weights of its own is traced by its parts; a convolution with parts, such as a
    weight norm, as the convolution.
    """
    names = layers.leaf_names(network)
    blocks = {name[:end] for name in names for end, sign in enumerate(name) if sign == "."}
    return [name for name in names if name not in blocks], sorted(blocks)


class _ProvenanceTracer(EveryFunction):
    """Follows which calls' outputs every tensor of a pass was made from."""

    def __init__(self, network: nn.Module, reporter: ProgressReporter) -> None:
        super().__init__()
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
        sources = self._sources_of(operands)
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
        for tensor in (*written, *new):
            self.set_sources(tensor, sources)
        return output

    def before(self, call: hooks.Call) -> None:
        """Open a step for a layer call that is about to run."""
        with not_followed():
            inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
            address, kind = Address(call.layer, call.index), self._kinds[call.layer]
            sources, depth = self._sources_of(inputs), len(self._open_blocks)
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
                output = output.detach()
                outputs = [output]
            for tensor in outputs:
                self.set_sources(tensor, frozenset((number,)))
            return output

    def enter(self, call: hooks.Call) -> None:
        """Open a block call that is about to run."""
        with not_followed():
            shapes = _shapes([tensor for _, tensor in hooks.tensors_in(call.inputs)])
            address, kind = Address(call.layer, call.index), self._kinds[call.layer]
            block = BlockCall(address, kind, len(self._open_blocks), len(self.steps) + 1, shapes)
            self.blocks.append(block)
            self._open_blocks.append(block)

    def leave(self, call: hooks.Call) -> None:
        """Complete a block call that has run."""
        with not_followed():
            block = self._open_blocks.pop()
            block.last = len(self.steps)
            block.output_shapes = _shapes([tensor for _, tensor in hooks.tensors_in(call.output)])

    def set_sources(self, tensor: Tensor, sources: frozenset[int]) -> None:
        """Note that this tensor object comes from those calls."""
        self._sources[tensor] = sources

    def _sources_of(self, tensors: Sequence[Tensor]) -> frozenset[int]:
        return frozenset().union(*(self._sources.get(tensor) or () for tensor in tensors))


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
        """Start a call's time."""
        self._started.append(self._now())

    def after(self, call: hooks.Call) -> None:
        """Stop a call's time."""
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


def _shapes(tensors: Sequence[Tensor]) -> str:
    return ", ".join(times(tensor.shape) or say("one number") for tensor in _ordinary(tensors))


def _ordinary(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor for tensor in map(plain, tensors) if tensor is not None]
