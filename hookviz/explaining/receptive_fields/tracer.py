"""Trace which pixels of the image each tensor of a pass depends on, from torch call to torch call.

A tensor that no traced function returned, or that something else wrote into since, is taken to see
all of the image: so is the result of a script function, another thread, a subclass of tensors.
Only tensors from before the pass have nothing of the image in them. A `Budget` bounds the time and
memory that tracing takes.
"""

import gc
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.explaining.receptive_fields.attention_rules import marked
from hookviz.explaining.receptive_fields.extent import (
    MAX_EDGE_VALUES,
    Extent,
    Operation,
    full_extent,
    merge_extents,
    pixel_extent,
    reduce_extents,
)
from hookviz.explaining.receptive_fields.rules import extents_of_results, is_elementwise
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import (
    ACTIVATIONS,
    NORMS,
    EveryFunction,
    function_name,
    not_followed,
    version,
)


@dataclass(slots=True)
class Budget:
    """Time and memory budget for tracing one pass: once it is spent, functions are not traced.

    Attributes:
        seconds: for tracing, without the network's own work.
        values: of all the edges alive at once.
        clock: in seconds; by default this thread's CPU time.
        spent: whether either is used up.
    """

    seconds: float = 2.0
    values: int = 4 * MAX_EDGE_VALUES
    clock: Callable[[], float] = time.thread_time
    spent: bool = field(default=False, init=False)
    _used: float = field(default=0.0, init=False)
    _allocated: int = field(default=0, init=False)
    _kept: int = field(default=0, init=False)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time of a block."""
        begin = self.clock()
        try:
            yield
        finally:
            self._used += self.clock() - begin
            self.spent |= self._used > self.seconds

    def keep(self, extent: Extent | None) -> None:
        """Count a field that is kept until the end: of each edge what is left without channels."""
        values = sum(math.prod(edge.shape[-2:]) for edge in extent.edges) if extent else 0
        self._kept += values
        self._allocated += values

    def take(self, new: Sequence[Extent], alive: Callable[[], Iterable[Extent]]) -> None:
        """Count new extents; `alive` is asked which are left only once they may be too many."""
        self._allocated += sum(edge.numel() for extent in new for edge in extent.edges)
        if self._allocated > self.values:
            memory = {
                edge.untyped_storage().data_ptr(): edge.untyped_storage().nbytes()
                // edge.element_size()
                for extent in alive()
                for edge in extent.edges
            }
            self._allocated = self._kept + sum(memory.values())
            self.spent |= self._allocated > self.values


_PLAIN = (bool, int, str, tuple, torch.dtype, torch.device, torch.layout, torch.memory_format)
"""Types of what torch tells of a tensor beside its values; a bool or int is taken as a choice."""

_FILLED = frozenset(("zeros", "ones", "empty", "arange", "eye", "rand", "randn", "randint"))
"""Functions that make a tensor from a shape alone."""

_CONSTANTS = (ACTIVATIONS - {"clamp"}) | NORMS | {"layer_norm", "rms_norm", "dropout", "dropout2d"}
"""Functions whose number arguments are a layer's settings."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Extent of a tensor, valid until something writes into it unseen; None has no image in it."""

    tensor: weakref.ref[Tensor]
    state: tuple[Any, ...]
    extent: Extent | None


class _ExtentTable:
    """Extents of the tensors that are alive, by object identity."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def __setitem__(self, tensor: Tensor, extent: Extent | None) -> None:
        key, own = id(tensor), weakref.ref(self)

        def forget(_: object) -> None:
            if (entries := own()) is not None:
                entries._entries.pop(key, None)

        self._entries[key] = _Entry(weakref.ref(tensor, forget), _state(tensor), extent)

    def get(self, tensor: Tensor) -> _Entry | None:
        """Return the tensor's entry; None without one that is still valid."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry.tensor() is not tensor or entry.state != _state(tensor):
            return None
        return entry

    def extents(self) -> Iterator[Extent]:
        """Yield all known extents."""
        return (entry.extent for entry in list(self._entries.values()) if entry.extent)

    def in_memory_of(self, tensor: Tensor) -> Iterator[tuple[Tensor, _Entry]]:
        """Yield the tensors that share memory with this one, with their entries, valid or not."""
        memory = _memory(tensor)
        for entry in list(self._entries.values()):
            other = entry.tensor()
            if other is not None and (other is tensor or _memory(other) == memory):
                yield other, entry


@dataclass(frozen=True, slots=True)
class _Operand:
    """Tensor among the arguments of a function, as it was before the call."""

    tensor: Tensor
    extent: Extent | None
    shape: torch.Size
    version: int


class Tracer(EveryFunction):
    """While it is entered, tracks which pixels of `image` each tensor depends on."""

    def __init__(self, network: nn.Module, image: Tensor, budget: Budget) -> None:
        """Start with an image, ``(1, C, H, W)``, and the tensors that are around `network`."""
        super().__init__()
        self._image, self._budget = image, budget
        self._entries, self._outside = _ExtentTable(), _ExtentTable()
        self._values_read = False
        for tensor in _tensors_around(network):
            with suppress(RuntimeError):  # a tensor without a version stays unknown
                self._outside[tensor] = None
        self._entries[image] = pixel_extent(image)

    def extent(self, tensor: Tensor) -> Extent | None:
        """Return the extent of `tensor`; None where nothing of the image went into it."""
        entry = self._entries.get(tensor) or self._outside.get(tensor)
        return entry.extent if entry else full_extent(self._image, tensor.ndim)

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, and record the extents of its results."""
        operands: list[_Operand] | None = None
        if not self._budget.spent:
            with self._guarded():
                operands = [
                    _Operand(tensor, self.extent(tensor), tensor.shape, version(tensor))
                    for _, tensor in hooks.tensors_in((args, kwargs))
                ]
        output = func(*args, **kwargs)
        if operands is not None:
            with self._guarded():
                self._record(func, args, kwargs, operands, output)
        return output

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Guard a block: a failure leaves tensors unknown, and never ends the network's pass.

        Without data it does end it: with data more can be known.
        """
        try:
            with self._budget.measured(), not_followed():
                yield
        except Exception:
            if self._image.is_meta:
                raise

    def _record(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: Sequence[_Operand],
        output: Any,
    ) -> None:
        results = [tensor for _, tensor in hooks.tensors_in(output)]
        extents = [operand.extent for operand in operands]
        name, depends = function_name(func), any(extents)
        if self._values_read and _takes_numbers(name, args, kwargs, operands):
            return
        shapes = [operand.shape for operand in operands]
        op = Operation(func, args, kwargs, shapes, extents, results, self._budget.values // 4)
        new = marked(op, extents_of_results(op)) if depends else [None] * len(results)
        for tensor, extent in zip(results, new, strict=True):
            self._entries[tensor] = extent
        for index, operand in enumerate(operands):
            assigned = index == 0 and output is None  # as `x[0] = y` and `x.data = y` do
            if assigned or version(operand.tensor) != operand.version:
                others = [other.extent for other in operands if other.tensor is not operand.tensor]
                alone = is_elementwise(op) and not any(others)
                self._spread(operand, None if alone else reduce_extents(extents, 0), but=results)
        if depends and not results and output is not None and not isinstance(output, _PLAIN):
            self._values_read = True
        fresh = [extent for extent in new if extent and not any(extent is old for old in extents)]
        self._budget.take(fresh, self._entries.extents)

    def _spread(self, written: _Operand, extent: Extent | None, but: Sequence[Tensor]) -> None:
        """Add the written extent to every tensor that shares the memory."""
        own = written.tensor
        for tensor, entry in self._entries.in_memory_of(own):
            if entry.state[0] == written.version and not any(
                tensor is other for other in (own, *but)
            ):
                self._entries[tensor] = merge_extents([entry.extent, extent], tensor.ndim)
        if not any(own is result for result in but):
            self._entries[own] = merge_extents([written.extent, extent], own.ndim)


def _takes_numbers(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], operands: Sequence[_Operand]
) -> bool:
    """Return whether Python numbers that may have been read from the image go into the result."""
    if not operands:
        return name not in _FILLED
    return name not in _CONSTANTS and _has_number((*args, *kwargs.values()))


def _has_number(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_number, value))
    return isinstance(value, float | complex | np.ndarray)


def _tensors_around(network: nn.Module) -> Iterator[Tensor]:
    """Yield every tensor that the network's modules hold: in attributes, containers, closures.

    And the constants of the files that define its classes.
    """
    files = {type(module).__module__ for module in network.modules()}
    constants = (vars(sys.modules[file]).values() for file in files if file in sys.modules)
    yield from (each for each in chain(*constants) if isinstance(each, Tensor))
    rest: list[Any] = [network]
    seen: dict[int, Any] = {}
    while rest:
        obj = rest.pop()
        if id(obj) in seen:
            continue
        seen[id(obj)] = obj
        if issubclass(type(obj), Tensor):
            yield obj
        elif isinstance(obj, FunctionType):
            rest += (obj.__closure__, obj.__defaults__, obj.__kwdefaults__, vars(obj))
        elif not isinstance(obj, ModuleType | type):
            rest += gc.get_referents(obj)


def _state(tensor: Tensor) -> tuple[Any, ...]:
    """Return a state that differs as soon as the tensor has other values: first its version."""
    steps = tensor.stride() if tensor.layout is torch.strided else ()
    return version(tensor), tensor.shape, steps, _memory(tensor)


def _memory(tensor: Tensor) -> int:
    """Identify the memory of a tensor."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # a sparse one, or one of another kind
        return id(tensor)
