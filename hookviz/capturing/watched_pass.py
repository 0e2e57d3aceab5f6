"""Watch one pass of a network: what each call returned, and whether every image runs the same.

Activations and poolings that the code calls as functions are listed beside the modules, by the
names that `hookviz.hooking.function_calls` gives them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.utils._python_dispatch import TorchDispatchMode

from hookviz.capturing import layers
from hookviz.capturing.axes import laid_out
from hookviz.capturing.layouts import Layouts
from hookviz.capturing.returned_call import (
    CallTables,
    Outputs,
    ReturnedCall,
    Shape,
    described,
    returned_call,
)
from hookviz.hooking import hooks
from hookviz.hooking.function_calls import (
    TORCH_ATTENTION,
    kind_of_function,
    observe_functions,
)
from hookviz.hooking.hooks import Recorder
from hookviz.hooking.modules import named_modules
from hookviz.hooking.torch_functions import EveryFunction, function_name, not_followed
from hookviz.types import FIRST, ActivationKey, LayerInfo, Layout


class FunctionCall(NamedTuple):
    """One call of a function as it returned, behind so many calls of modules."""

    behind: int
    returned: ReturnedCall


@dataclass(frozen=True, eq=False)
class FunctionTrace:
    """Functions of a pass that stand between its modules; the attributes as `LayerTrace` has them.

    Attributes:
        layers: each of them, by the shapes of its first call, in order.
        maps: those of them that put out maps.
        calls, nbytes, map_outputs, layouts, shapes, taken: by name, or by address.
        order: modules and functions by name and call, in order of return.
    """

    layers: tuple[LayerInfo, ...]
    maps: tuple[LayerInfo, ...]
    calls: Mapping[str, int]
    nbytes: Mapping[str, int]
    map_outputs: Mapping[str, tuple[ActivationKey, ...]]
    layouts: Mapping[ActivationKey, Layout]
    shapes: Mapping[ActivationKey, Shape]
    taken: Mapping[ActivationKey, Layout]
    order: tuple[tuple[str, int], ...]

    @property
    def names(self) -> Iterable[str]:
        """Names of modules and functions in order of their first return."""
        return dict.fromkeys(name for name, _ in self.order)

    def among(
        self, listed: Sequence[LayerInfo], functions: Sequence[LayerInfo], *, blocks: bool
    ) -> tuple[LayerInfo, ...]:
        """Return layers with functions among them, numbered anew, `blocks` before their parts."""
        if not functions:
            return tuple(listed)
        every = (*listed, *functions)
        order: Mapping[str, int] = {name: place for place, name in enumerate(self.names)}
        if blocks:
            order = layers.in_order_of_beginning(name for name, _ in self.order)
        calls = {layer.name: layer.calls for layer in every}
        return layers.numbered(sorted(every, key=lambda layer: order[layer.name]), calls)


@dataclass(frozen=True)
class WatchedPass:
    """One pass as it was watched.

    Attributes:
        calls: of all modules, in order of return.
        passed_on, overwritten, scores, keeps_batch, is_static: as `LayerTrace` has them.
        shape: of the input, ``(C, H, W)``.
        functions: calls of activations and poolings between the modules, in order.
    """

    calls: tuple[ReturnedCall, ...]
    passed_on: frozenset[int]
    overwritten: frozenset[str]
    scores: int
    keeps_batch: bool
    is_static: bool
    shape: Shape
    functions: tuple[FunctionCall, ...] = ()


class FirstLook:
    """What a pass that is watched records beside, so that a first look takes no other pass.

    Attributes:
        output: what the network put out.
        has_run: whether there was a pass.
    """

    def __init__(self, choose: Callable[[], frozenset[str]]) -> None:
        """Record the layers that `choose` names, which is asked where there is a pass."""
        self._choose = choose
        self.output: Any = None
        self.has_run = False

    @cached_property
    def layers(self) -> frozenset[str]:
        """Layers whose outputs are recorded."""
        return self._choose()

    @cached_property
    def recorder(self) -> Recorder:
        """Recorder of copies of them."""
        return Recorder(self.layers)

    def has(self, layers: Iterable[str]) -> bool:
        """Return whether it recorded all of these, if they ran."""
        return self.has_run and self.layers.issuperset(layers)


def watch(
    network: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    look: FirstLook | None = None,
    *,
    notes_writes: bool = True,
) -> WatchedPass:
    """Watch a pass over `images`, or what `run` makes of them with hooks on the network.

    With `notes_writes` all outputs are in memory to the end, to see which are written over.
    """
    modules = dict(named_modules(network))
    modules.pop("")
    seen: list[ReturnedCall] = []
    recorder, outputs, passed_on = Recorder(), Outputs(), set[int]()
    layouts, reads = Layouts(), _ValueReads()
    functions: list[FunctionCall] = []
    kept = frozenset[str]() if look is None else look.layers
    # Scripts call operators that no dispatch mode can pass on: of those nobody knows.
    reads.found = any(isinstance(each, ScriptModule) for each in modules.values())
    layouts.take(images, Layout(FIRST), is_sure=True)

    def see_function(call: hooks.Call) -> None:
        if notes_writes:
            recorder.see(call)
        functions.append(_seen_function(call, len(seen), layouts))

    def see(call: hooks.Call) -> None:
        with not_followed():
            if notes_writes:
                recorder.see(call)
            if look is not None and call.layer in kept:
                look.recorder.see(call)
            seen.append(returned_call(call, modules[call.layer], layouts))
            if outputs.passes_on(call.output):
                passed_on.add(len(seen) - 1)

    with (
        hooks.observe(network, modules, see),
        observe_functions(network, layers.quiet_names(network), see_function),
        nullcontext() if reads.found else reads,
        _Exports(reads),
        _attention_not_followed(network),
        hooks.within_a_pass(),
    ):
        output = (run or network)(images)
    if look is not None:
        look.output, look.has_run = output, True
    scores = output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 0
    return WatchedPass(
        tuple(seen),
        frozenset(passed_on),
        recorder.overwritten_layers(),
        scores,
        all(len(part) == len(images) for _, part in hooks.tensors_in(output) if part.ndim),
        not reads.found,
        tuple(images.shape[1:]),
        tuple(functions),
    )


class _ValueReads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Finds whether a pass reads a tensor's values into Python, or a shape depends on them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # In inference mode operators come whole, and nobody knows which of their parts read values.
        is_whole = torch.is_inference_mode_enabled()
        self.found = self.found or is_whole or _reads_values(func, args)
        return func(*args, **(kwargs or {}))


def _reads_values(operator: Any, args: tuple[Any, ...]) -> bool:
    if operator.overloadpacket is torch.ops.aten.index:  # only a mask's values are read
        return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1])
    return not _OF_VALUES.isdisjoint(operator.tags) or "nested_tensor_from_mask" in str(operator)


_OF_VALUES = frozenset((torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))


class _Exports(EveryFunction):
    """Finds the functions that hand out values without an operator of torch."""

    def __init__(self, reads: _ValueReads) -> None:
        super().__init__()
        self._reads = reads

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call the function."""
        if function_name(func) in ("tolist", "numpy", "array", "dlpack"):
            self._reads.found = True
        return func(*args, **kwargs)


@contextmanager
def _attention_not_followed(network: nn.Module) -> Iterator[None]:
    """Follow no function within torch's own attention: it computes another way where one does."""
    names = [name for name, each in named_modules(network) if isinstance(each, TORCH_ATTENTION)]
    with ExitStack() as rest:
        blocks: list[ExitStack] = []

        def enter(_call: hooks.Call) -> None:
            blocks.append(rest.enter_context(ExitStack()))
            blocks[-1].enter_context(not_followed())

        def leave(_call: hooks.Call) -> None:
            if blocks:
                blocks.pop().close()

        with (
            hooks.before(network, names, enter),
            hooks.observe(network, names, leave, always_call=True),
        ):
            yield


def _seen_function(call: hooks.Call, behind: int, layouts: Layouts) -> FunctionCall:
    """Describe a call of a function, as far as the layers of a pass tell.

    Args:
        call: as it was seen.
        behind: how many calls of modules had returned.
        layouts: of this pass, which are told of the call.
    """
    kind = kind_of_function(call.layer)
    # Of the axes a pooling says as much as its module does; an activation leaves them.
    module = getattr(nn, kind)(1) if "Pool" in kind else nn.Identity()
    return FunctionCall(behind, returned_call(call, module, layouts))


def function_trace(
    modules: Sequence[str], functions: Sequence[FunctionCall], dimensions: int
) -> FunctionTrace:
    """List the functions that a pass called.

    Args:
        modules: the module of every call, in order of return.
        functions: every call of a function, in order.
        dimensions: how many axes the network's input has, its batch included.
    """
    tables = CallTables(laid_out([each.returned for each in functions], {}), dimensions)
    infos = (described(_info(name), call) for name, call in tables.first.items())
    listed = layers.numbered(infos, tables.counts)
    return FunctionTrace(
        listed,
        tuple(info for info in listed if info.name in tables.map_outputs),
        MappingProxyType(tables.counts),
        MappingProxyType(tables.nbytes),
        MappingProxyType(tables.map_outputs),
        MappingProxyType(tables.layouts),
        MappingProxyType(tables.shapes),
        MappingProxyType(tables.taken),
        tuple(_in_order(modules, functions)),
    )


def _info(name: str) -> LayerInfo:
    return LayerInfo(
        name=name,
        kind=kind_of_function(name),
        index=0,
        stage="",
        calls=1,
        input_shape=(),
        output_shape=(),
        parameters=0,
        is_function=True,
    )


def _in_order(
    modules: Sequence[str], functions: Sequence[FunctionCall]
) -> Iterable[tuple[str, int]]:
    """Yield every call by name and number, functions where they stand between modules."""
    counts = Counter[str]()
    waiting = list(functions)
    for turn in range(len(modules) + 1):
        names = []
        while waiting and waiting[0].behind <= turn:
            names.append(waiting.pop(0).returned.layer)
        for name in (*names, *modules[turn : turn + 1]):
            yield name, counts[name]
            counts[name] += 1
