"""Register every hook of HookViz, and remove it on every way out of its block.

Every way in takes names, resolves them all before the first hook is registered, and removes every
hook on every way out, `KeyboardInterrupt` and Streamlit's control exceptions included. Other
people's hooks stay. What a callback raises ends the pass. The network itself goes by the name "".

What activation checkpointing computes again in a backward pass is no call: nothing observes it, but
an edit is made again. A look within a pass calls none of that pass's hooks. Nothing is called while
`torch.compile` makes a program of a layer: it would go on calling it after the block.

Calls of a layer are numbered. A checkpoint keeps no activations, and runs its layers again in the
backward pass, so that a call's number needs three steps:

1. Find the checkpoints that a call runs in on its stack: each has an object of its own there, the
   same one in the forward pass and in the recomputation.
2. In the forward pass count the calls, and note the number under each of these objects.
3. In the recomputation give the numbers that were noted, in their order.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling
from torch.optim import Optimizer
from torch.utils.checkpoint import CheckpointFunction
from torch.utils.hooks import RemovableHandle

from hookviz.errors import SettingError
from hookviz.hooking.modules import module_named
from hookviz.hooking.torch_functions import counter, plain
from hookviz.language.saying import say
from hookviz.types import ActivationKey

_CHECKPOINT_FILE = CheckpointFunction.forward.__code__.co_filename


class Checkpoint(NamedTuple):
    """Checkpoint that a call runs in.

    Attributes:
        key: the object that stands for it in both passes.
        is_recomputed: whether this is the recomputation.
        is_reentrant: whether the recomputation makes the graph that gradients go through. Else the
            forward pass makes it, and the recomputation only fills in numbers.
    """

    key: Any
    is_recomputed: bool
    is_reentrant: bool


def is_backward_pass() -> bool:
    """Return whether the caller runs in a backward pass, in which layers are computed again."""
    return bool(torch._C._current_graph_task_id() != -1)


def checkpoints() -> list[Checkpoint]:
    """Return the checkpoints that the caller runs in: innermost first, up to a recomputed one."""
    if not is_backward_pass() and torch.is_grad_enabled() and not _may_be_checkpoint():
        return []  # without a look at the stack, which takes microseconds
    inside = []
    for each in _on_stack():
        inside.append(each)
        if each.is_recomputed:
            break
    return inside


def _may_be_checkpoint() -> bool:
    """Return whether something saves tensors in its own way; before torch 2.6 nobody can tell."""
    top: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is None or top(True) is not None


def is_in_checkpoint() -> tuple[bool, bool]:
    """Return whether the caller is recomputed, and whether its checkpoint is a reentrant one."""
    inside = checkpoints()
    if is_backward_pass():
        return True, bool(inside) and inside[-1].is_recomputed and inside[-1].is_reentrant
    return False, any(each.is_reentrant for each in inside)


def _on_stack() -> Iterator[Checkpoint]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _CHECKPOINT_FILE:
            function, values = frame.f_code.co_name, frame.f_locals
            if function == "unpack_hook" and "frame" in values:
                yield Checkpoint(values["frame"], is_recomputed=True, is_reentrant=False)
            elif "ctx" in values:
                yield Checkpoint(values["ctx"], function == "backward", is_reentrant=True)
            elif "gen" in values:
                key = values["gen"].gi_frame.f_locals.get("new_frame")
                if key is not None:
                    yield Checkpoint(key, is_recomputed=False, is_reentrant=False)
        frame = frame.f_back


class CallNumbers:
    """Numbers of one layer's calls, from 0; a recomputed call has the number of the first one."""

    def __init__(self) -> None:
        self._count = count()  # `next` of it is one step, whatever other threads run the layer
        self._latest = 0
        self._numbers: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
        self._repeated: WeakKeyDictionary[Any, tuple[int, int]] = WeakKeyDictionary()

    def next(self) -> int:
        """Return the number of the call that is running."""
        inside = checkpoints()
        recomputed = inside.pop() if inside and inside[-1].is_recomputed else None
        if recomputed:
            number = self._repeat(recomputed.key)
        elif is_backward_pass():  # of a checkpoint that is not torch's own
            number = self._latest
        else:
            number = self._latest = next(self._count)
        for each in inside:
            self._numbers.setdefault(each.key, []).append(number)
        return number

    def _repeat(self, key: Any) -> int:
        numbers = self._numbers.get(key)
        if not numbers:  # its forward pass was before the block
            return self._latest
        task = torch._C._current_graph_task_id()
        last, position = self._repeated.get(key, (task, 0))
        if task != last:  # a second backward pass, through a graph that was retained
            position = 0
        self._repeated[key] = task, position + 1
        return numbers[position % len(numbers)]


def map_tensors(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return an output with what `change` makes of every tensor in it.

    It goes into dicts, tuples, lists and dataclasses; anything else stays.

    >>> from hookviz.hooking.hooks import map_tensors
    >>> map_tensors((torch.ones(2), "mask"), lambda tensor: tensor * 2)
    (tensor([2., 2.]), 'mask')
    """
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, dict):
        parts = {key: map_tensors(part, change) for key, part in output.items()}
        return parts if type(output) is dict else type(output)(parts)
    if isinstance(output, tuple | list):
        several = [map_tensors(part, change) for part in output]
        is_named = hasattr(output, "_fields")
        return type(output)(*several) if is_named else type(output)(several)
    if is_dataclass(output) and not isinstance(output, type):
        named = {
            each.name: map_tensors(getattr(output, each.name), change) for each in fields(output)
        }
        return replace(output, **named)
    return output


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of one layer, as a forward hook sees it.

    Attributes:
        layer: the module's dotted path.
        index: 0 for its first call since the block began, 1 for its second.
        inputs: all arguments, those given by name after the others, by reference.
        output: whatever the module returned, by reference; None before the call.
        names: keywords of the last of `inputs`, those that were passed by keyword.
    """

    layer: str
    index: int
    inputs: tuple[Any, ...]
    output: Any
    names: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments and keyword arguments of the call."""
        positional = len(self.inputs) - len(self.names)
        return self.inputs[:positional], dict(
            zip(self.names, self.inputs[positional:], strict=True)
        )

    def with_inputs(self, inputs: Any) -> "Call":
        """Return the call with other inputs: a tuple of as many, or a replacement for the first.

        Raises:
            SettingError: the tuple has another length.
        """
        every = inputs if isinstance(inputs, tuple) else (inputs, *self.inputs[1:])
        if len(every) != len(self.inputs):
            raise SettingError(
                say(
                    "{new_count} inputs are given for {layer}, which was called with "
                    "{old_count}. A tuple stands for all of them; an input that is a tuple "
                    "itself goes into one: ((h, c),).",
                    new_count=len(every),
                    layer=self.layer or say("the network itself"),
                    old_count=len(self.inputs),
                )
            )
        return replace(self, inputs=every)


@contextmanager
def observe(
    network: nn.Module,
    layers: Iterable[str],
    see: Callable[[Call], object],
    *,
    always_call: bool = False,
) -> Iterator[None]:
    """Call `see` after every call of the named layers while the block runs.

    With `always_call` after those that fail too, which have no output.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """

    def unchanged(call: Call) -> None:
        see(call)  # whatever it returns, the network goes on with its own output

    with edit(network, layers, unchanged, always_call=always_call, recomputed=False):
        yield


@contextmanager
def edit(
    network: nn.Module,
    layers: Iterable[str],
    change: Callable[[Call], Any],
    *,
    always_call: bool = False,
    recomputed: bool = True,
) -> Iterator[None]:
    """Go on with what `change` makes of every call of the named layers, while the block runs.

    Where it returns None, the network goes on with the layer's own output. With `recomputed` calls
    that are made again are changed again, under the index of the first one.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """

    def register(module: nn.Module, hook: Callable[..., Any]) -> RemovableHandle:
        # A TorchScript program forbids the method and calls the hook all the same.
        return nn.Module.register_forward_hook(
            module, hook, with_kwargs=True, always_call=always_call
        )

    with _registered(network, layers, register, change, recomputed=recomputed):
        yield


@contextmanager
def before(
    network: nn.Module,
    layers: Iterable[str],
    change: Callable[[Call], Any],
    *,
    recomputed: bool = False,
) -> Iterator[None]:
    """Call `change` before every call of the named layers, when there is no output yet.

    This is the time to copy what a layer takes in: an in-place layer writes over it. Where it
    returns None, the layer gets what it was called with; a tuple takes the place of `Call.inputs`,
    and anything else that of the first of them. `recomputed` is as of `edit`.

    Raises:
        UnknownLayerError: the network has no layer of that name.
        SettingError: from within the pass, where the tuple has another length than `Call.inputs`.
    """

    def arguments(call: Call) -> Any:
        changed = change(call)
        return None if changed is None else call.with_inputs(changed).arguments

    def register(module: nn.Module, hook: Callable[..., Any]) -> RemovableHandle:
        return nn.Module.register_forward_pre_hook(module, hook, with_kwargs=True)

    with _registered(network, layers, register, arguments, recomputed=recomputed):
        yield


@contextmanager
def _registered(
    network: nn.Module,
    layers: Iterable[str],
    register: Callable[[nn.Module, Callable[..., Any]], RemovableHandle],
    react: Callable[[Call], Any],
    *,
    recomputed: bool,
) -> Iterator[None]:
    """Register a hook on each of the named layers; it returns the value of `react` for the call.

    `register` is of `nn.Module` itself: a TorchScript module's own refuses hooks, as they are no
    part of its program, and yet it is called like any other.
    """

    def watcher(name: str) -> Callable[..., Any]:
        next_number = CallNumbers().next if recomputed else count().__next__
        registration = next(_registrations)

        def hook(
            _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any = None
        ) -> Any:
            if registration < getattr(_silenced, "below", 0):
                return None
            if is_dynamo_compiling() or (is_backward_pass() and not recomputed):
                return None
            inputs = (*args, *kwargs.values())
            with within_a_pass():
                return react(Call(name, next_number(), inputs, output, tuple(kwargs)))

        return hook

    modules = {name: module_named(network, name) for name in layers}
    with ExitStack() as hooks:
        for name, module in modules.items():
            hooks.callback(register(module, watcher(name)).remove)
        yield


_registrations, _silenced = count(1), threading.local()
"""`_silenced.below`: hooks that were registered before are silent; `present`: in this pass."""


class _ThreadValue:
    """Block in which an attribute of `_silenced` has another value; every hook call enters one."""

    def __init__(self, name: str, value: int) -> None:
        self._name, self._value = name, value

    def __enter__(self) -> None:
        self._outside: int = getattr(_silenced, self._name, 0)
        setattr(_silenced, self._name, self._value)

    def __exit__(self, *_: object) -> None:
        setattr(_silenced, self._name, self._outside)


def silenced() -> _ThreadValue:
    """Call no hook that was registered before the block, in this thread."""
    return _ThreadValue("below", next(_registrations))


def within_a_pass() -> _ThreadValue:
    """Run a pass, or react to one: a look at the network in the block is no part of it."""
    return _ThreadValue("present", next(_registrations))


@contextmanager
def apart_from_a_pass() -> Iterator[bool]:
    """Call no hook, in this thread, of a pass that the caller is within; yield whether it is."""
    present = getattr(_silenced, "present", 0)
    with _ThreadValue("below", max(present, getattr(_silenced, "below", 0))):
        yield present > 0


@contextmanager
def on_gradients(change: Callable[[str, Tensor], Tensor | None]) -> Iterator["GradientHooks"]:
    """Yield a place to name tensors whose gradients `change` is called with in the block.

    It is given the name and the gradient as a backward pass computes it, and what it returns takes
    the gradient's place; None keeps it.
    """
    with ExitStack() as hooks:
        yield GradientHooks(hooks, change)


@contextmanager
def on_steps(
    optimizer: Optimizer, before: Callable[[], object], after: Callable[[], object]
) -> Iterator[None]:
    """Call `before` ahead of each step of an optimiser in the block, and `after` behind it."""

    def ahead(*_args: object) -> None:  # what a hook returns would be the step's arguments
        before()

    def behind(*_args: object) -> None:
        after()

    handles = optimizer.register_step_pre_hook(ahead), optimizer.register_step_post_hook(behind)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class GradientHooks:
    """Tensors whose gradients are seen; see `on_gradients`."""

    def __init__(self, hooks: ExitStack, change: Callable[[str, Tensor], Tensor | None]) -> None:
        self._hooks = hooks
        self._change = change

    def add(self, name: str, tensor: Tensor) -> None:
        """Call the hook with this tensor's gradient too; it must be in a graph or a leaf of one."""

        def hook(gradient: Tensor) -> Tensor | None:
            with within_a_pass():
                return self._change(name, gradient)

        handle: Any = tensor.register_hook(hook)  # type: ignore[no-untyped-call]
        self._hooks.callback(handle.remove)


class StopForward(BaseException):
    """Raised inside a hook to end the pass when everything wanted is recorded.

    A `BaseException`, so that no ``except Exception`` of a network's own code catches it.
    """


_NO_TENSORS = (str, bytes, bytearray, memoryview, range)
"""Sequences without tensors, perhaps of millions of items."""


def tensors_in(output: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Yield every tensor in a layer's output with its path: tuples, lists, dicts, dataclasses."""
    if isinstance(output, Tensor):
        yield path, output
    elif isinstance(output, Mapping):
        for key, value in output.items():
            yield from tensors_in(value, (*path, str(key)))
    elif isinstance(output, tuple) and hasattr(output, "_fields"):
        for key, value in zip(output._fields, output, strict=True):
            yield from tensors_in(value, (*path, key))
    elif isinstance(output, Sequence) and not isinstance(output, _NO_TENSORS):
        for index, value in enumerate(output):
            yield from tensors_in(value, (*path, str(index)))
    elif is_dataclass(output) and not isinstance(output, type):
        for part in fields(output):
            yield from tensors_in(getattr(output, part.name), (*path, part.name))


def plain_tensors_in(output: Any) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Yield every tensor in a layer's output as ordinary numbers (see `plain`), with its path.

    Tensors without numbers are left out.
    """
    for path, tensor in tensors_in(output):
        numbers = plain(tensor)
        if numbers is not None:
            yield path, numbers


@dataclass(frozen=True, eq=False, slots=True)
class Recorded:
    """Tensor that a layer put out, held by reference, with proof of whether it was overwritten.

    Attributes:
        address: layer, call and part of the output.
        tensor: as the layer returned it, or a copy of it where a copy was asked for.
        version: the tensor's version counter at that moment; −1 for a copy of an inference tensor,
            which has none.
    """

    address: ActivationKey
    tensor: Tensor
    version: int

    @property
    def overwritten(self) -> bool:
        """Whether something wrote into the tensor after the hook had seen it.

        An in-place operation counts up ``_version``, also through views of the same memory.
        """
        return self.version >= 0 and self.tensor._version != self.version


class Recorder:
    """Record of every tensor that the observed layers put out."""

    def __init__(self, copy: Iterable[str] = (), *, detach: bool = True) -> None:
        """Start empty; outputs of the layers in `copy` are copied, as they get overwritten."""
        self.records: list[Recorded] = []
        self._detach = detach
        self._copy = frozenset(copy)

    def see(self, call: Call, *, is_last: bool = False) -> None:
        """Record every tensor of a call's output, nested or not, as ordinary numbers.

        Of the last call of a pass, after which nothing writes, nothing is copied.
        """
        for path, tensor in plain_tensors_in(call.output):
            values = tensor.detach() if self._detach else tensor
            if (call.layer in self._copy and not is_last) or counter(values) is None:
                values = values.clone()
            address, writes = ActivationKey(call.layer, call.index, path), counter(values)
            self.records.append(Recorded(address, values, -1 if writes is None else writes))

    def overwritten_layers(self) -> frozenset[str]:
        """Return the layers whose recorded output was written to later: it can't be trusted."""
        return frozenset(record.address.layer for record in self.records if record.overwritten)
