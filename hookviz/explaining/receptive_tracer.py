"""What every tensor of a pass sees of the image, followed from one torch function to the next.

A tensor that no followed function gave, or that something else wrote into since, is taken to see
all of the image: so is what comes out of a script function, another thread, a subclass of tensors.
Only what was there before the pass has nothing of the image in it.
"""

import gc
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.explaining.reach import Operation, Reach, everything, of_pixels, total, union
from hookviz.explaining.receptive_budget import Budget
from hookviz.explaining.receptive_rules import is_value_by_value, through
from hookviz.hooking import hooks
from hookviz.hooking.copies import insides
from hookviz.hooking.surroundings import referred_to
from hookviz.hooking.torch_functions import (
    ACTIVATIONS,
    NORMS,
    EveryFunction,
    function_name,
    not_followed,
    version,
)

_PLAIN = (bool, int, str, tuple, torch.dtype, torch.device, torch.layout, torch.memory_format)
"""What torch tells of a tensor beside its values; a truth or whole number is taken as a choice."""

_FILLED = frozenset(("zeros", "ones", "empty", "arange", "eye", "rand", "randn", "randint"))
"""Functions that make a tensor of no other numbers than a shape."""

_CONSTANTS = (ACTIVATIONS - {"clamp"}) | NORMS | {"layer_norm", "rms_norm", "dropout", "dropout2d"}
"""Functions whose numbers are a layer's settings."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """What is known of a tensor until something writes into it unseen; `reach` None: no image."""

    tensor: weakref.ref[Tensor]
    state: tuple[Any, ...]
    reach: Reach | None


class _Marks:
    """What is known of tensors while they are alive, each told by being the same object."""

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}

    def __setitem__(self, tensor: Tensor, reach: Reach | None) -> None:
        key, own = id(tensor), weakref.ref(self)

        def forget(_: object) -> None:
            if (marks := own()) is not None:
                marks._marks.pop(key, None)

        self._marks[key] = _Mark(weakref.ref(tensor, forget), _state(tensor), reach)

    def get(self, tensor: Tensor) -> _Mark | None:
        """The tensor's mark; None without one that still holds."""
        mark = self._marks.get(id(tensor))
        if mark is None or mark.tensor() is not tensor or mark.state != _state(tensor):
            return None
        return mark

    def reaches(self) -> Iterator[Reach]:
        """All that are known."""
        return (mark.reach for mark in list(self._marks.values()) if mark.reach)

    def in_memory_of(self, tensor: Tensor) -> Iterator[tuple[Tensor, _Mark]]:
        """Every marked tensor that shares memory with this one, whether its mark holds or not."""
        memory = _memory(tensor)
        for mark in list(self._marks.values()):
            other = mark.tensor()
            if other is not None and (other is tensor or _memory(other) == memory):
                yield other, mark


@dataclass(frozen=True, slots=True)
class _Operand:
    """A tensor among the arguments of a function, as it was before the call."""

    tensor: Tensor
    reach: Reach | None
    shape: torch.Size
    version: int


class Tracer(EveryFunction):
    """While it is entered, knows of each tensor what it sees of `image`."""

    def __init__(self, network: nn.Module, image: Tensor, budget: Budget) -> None:
        """Start with an image, ``(1, C, H, W)``, and what there is before `network` takes it."""
        super().__init__()
        self._image, self._budget = image, budget
        self._marks, self._outside = _Marks(), _Marks()
        self._values_read = False
        for tensor in _tensors_around(network):
            with suppress(RuntimeError):  # of one that tells no version nothing is known
                self._outside[tensor] = None
        self._marks[image] = of_pixels(image)

    def reach(self, tensor: Tensor) -> Reach | None:
        """What `tensor` sees; None where nothing of the image went into it."""
        mark = self._marks.get(tensor) or self._outside.get(tensor)
        return mark.reach if mark else everything(self._image, tensor.ndim)

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives, with what its results see taken down."""
        operands: list[_Operand] | None = None
        if not self._budget.spent:
            with self._bookkeeping():
                operands = [
                    _Operand(tensor, self.reach(tensor), tensor.shape, version(tensor))
                    for _, tensor in hooks.tensors_in((args, kwargs))
                ]
        output = func(*args, **kwargs)
        if operands is not None:
            with self._bookkeeping():
                self._take_down(func, args, kwargs, operands, output)
        return output

    @contextmanager
    def _bookkeeping(self) -> Iterator[None]:
        """A block in which what fails leaves tensors unknown, and never ends the network's pass.

        Without data it does end it: with data more can be known.
        """
        try:
            with self._budget.measured(), not_followed():
                yield
        except Exception:
            if self._image.is_meta:
                raise

    def _take_down(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: Sequence[_Operand],
        output: Any,
    ) -> None:
        results = [tensor for _, tensor in hooks.tensors_in(output)]
        reaches = [operand.reach for operand in operands]
        name, sees = function_name(func), any(reaches)
        if self._values_read and _takes_numbers(name, args, kwargs, operands):
            return
        shapes = [operand.shape for operand in operands]
        op = Operation(func, args, kwargs, shapes, reaches, results, self._budget.values // 4)
        made = through(op) if sees else [None] * len(results)
        for tensor, reach in zip(results, made, strict=True):
            self._marks[tensor] = reach
        for place, operand in enumerate(operands):
            assigned = place == 0 and output is None  # as `x[0] = y` and `x.data = y` do
            if assigned or version(operand.tensor) != operand.version:
                others = [other.reach for other in operands if other.tensor is not operand.tensor]
                alone = is_value_by_value(op) and not any(others)
                self._spread(operand, None if alone else total(reaches, 0), but=results)
        if sees and not results and output is not None and not isinstance(output, _PLAIN):
            self._values_read = True
        fresh = [reach for reach in made if reach and not any(reach is old for old in reaches)]
        self._budget.take(fresh, self._marks.reaches)

    def _spread(self, written: _Operand, reach: Reach | None, but: Sequence[Tensor]) -> None:
        """Add to whatever shares the memory that was written to what went in there."""
        own = written.tensor
        for tensor, mark in self._marks.in_memory_of(own):
            if mark.state[0] == written.version and not any(tensor is each for each in (own, *but)):
                self._marks[tensor] = union([mark.reach, reach], tensor.ndim)
        if not any(own is result for result in but):
            self._marks[own] = union([written.reach, reach], own.ndim)


def _takes_numbers(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], operands: Sequence[_Operand]
) -> bool:
    """Whether numbers of Python that may have been read from the image go into what is made."""
    if not operands:
        return name not in _FILLED
    return name not in _CONSTANTS and _has_number((*args, *kwargs.values()))


def _has_number(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_number, value))
    return isinstance(value, float | complex | np.ndarray)


def _tensors_around(network: nn.Module) -> Iterator[Tensor]:
    """Every tensor that its code can get at: in attributes, closures, globals, caches of functions.

    It goes from object to object, but of what lies outside only to what the code refers to.
    """
    rest: list[Any] = [network, *referred_to(network)]
    met: dict[int, Any] = {}
    while rest:
        thing = rest.pop()
        if id(thing) in met:
            continue
        met[id(thing)] = thing
        if issubclass(type(thing), Tensor):
            yield thing
        elif isinstance(thing, FunctionType):
            rest += insides(thing)
        elif not isinstance(thing, ModuleType | type):
            rest += gc.get_referents(thing)


def _state(tensor: Tensor) -> tuple[Any, ...]:
    """What is another one as soon as the tensor has other values: first of all its version."""
    steps = tensor.stride() if tensor.layout is torch.strided else ()
    return version(tensor), tensor.shape, steps, _memory(tensor)


def _memory(tensor: Tensor) -> int:
    """What tells the memory of a tensor from that of others."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # a sparse one, or one of another kind
        return id(tensor)
