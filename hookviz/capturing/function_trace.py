"""Trace the activations and poolings that a network's code calls as functions.

They are listed beside the modules, by the names that `hookviz.hooking.function_calls` gives them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from torch import nn

from hookviz.capturing import layers
from hookviz.capturing.axes import laid_out
from hookviz.capturing.layouts import Layouts
from hookviz.capturing.returned_call import (
    CallTables,
    ReturnedCall,
    Shape,
    described,
    returned_call,
)
from hookviz.hooking import hooks
from hookviz.hooking.function_calls import kind_of_function
from hookviz.types import ActivationKey, LayerInfo, Layout


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


def seen_function(call: hooks.Call, behind: int, layouts: Layouts) -> FunctionCall:
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
