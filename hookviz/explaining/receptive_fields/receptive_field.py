"""Compute the receptive field of each layer's cells on the network's input: size, stride and boxes.

1. One pass over the network traces every tensor with four edges: the first and the last row and
   column of the input that each of its values depends on. A convolution or a pooling takes the
   furthest edge under its window, arithmetic the furthest of its operands, and a function that
   rearranges values (view, permute, chunk) rearranges the edges in the same way.
2. The result of any other function depends on all that its arguments depend on, and a tensor of
   unknown origin on all of the image: one that no traced function returned, or that something else
   wrote into since, such as the result of a script function, another thread or a subclass of
   tensors. Only tensors from before the pass depend on nothing. So a field can come out too large,
   never too small.
3. Beside the edges goes the field of rows and columns on an unbounded image: windows are the same
   all along a map, so a few cells tell it. A `Budget` ends tracing after 2 s or 200 MB.

Branches, groups, dilation and padding are those of this very network; values and weights don't
matter, so a weight of 0 counts as seen. A branch that the code chooses by values counts where the
input is given, and not its shape alone.

The effective receptive field weighs the pixels by their |gradient| over images (Luo, Li, Urtasun
and Zemel, "Understanding the Effective Receptive Field in Deep Convolutional Neural Networks",
2016).
"""

import gc
import math
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace, layer_trace
from hookviz.capturing.layers import quiet_names
from hookviz.errors import SettingError
from hookviz.explaining.receptive_fields.extent import (
    MAX_EDGE_VALUES,
    WINDOWS,
    Edges,
    Extent,
    Operation,
    full_extent,
    marked,
    merge_extents,
    pixel_extent,
    reduce_extents,
)
from hookviz.explaining.receptive_fields.rules import extents_of_results, is_elementwise
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, pass_without_data, private_replica
from hookviz.hooking.function_calls import observe_functions
from hookviz.hooking.network_state import Findings, is_shared, unchanged
from hookviz.hooking.torch_functions import (
    ACTIVATIONS,
    NORMS,
    EveryFunction,
    function_name,
    not_followed,
    version,
)
from hookviz.language.saying import say
from hookviz.types import LAST, TOKENS, UNKNOWN, ActivationKey, Layout, Model, ModelInput
from hookviz.types import WINDOWS as IN_WINDOWS


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
        """Count a field that is kept until the end: its edges without their channels."""
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


Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels of the input; the last row and column are not included."""

_MAX_SHAPES = 8  # cached input shapes per network, or inputs


@dataclass(frozen=True, eq=False, slots=True)
class ReceptiveField:
    """Receptive fields of one layer's cells: which pixels of the input they depend on.

    A field is the smallest rectangle that holds all of them, over all channels: dilated kernels
    leave pixels out of it.

    Attributes:
        size: height and width in pixels of the largest, as though the image were unbounded, with
            the windows that adaptive pooling has on this one; None where every cell sees all of an
            image of any size, as behind squeeze-and-excitation, or where that can't be ruled out.
            Where it sees all along one side alone, this is that side of the very image, and of a
            layer that puts out no maps, of tokens and behind windows of attention it is what they
            see of the very image.
        stride: rows and columns of the input from one cell's field to the next one's, on average
            (the jump); 0 where it is unknown.
        cells: rows and columns of the map; (1, 1) for a layer that puts out no maps.
        mixed: what attention has mixed on the way to it: ``"all"`` cells there were, those of
            ``"windows"``, which see no more than `size` and the boxes say, or none, which is empty.
    """

    size: tuple[int, int] | None
    stride: tuple[float, float]
    cells: tuple[int, int]
    _edges: tuple[NDArray[np.int32], ...] = field(repr=False)
    mixed: str = ""

    @property
    def boxes(self) -> tuple[NDArray[np.int32], ...]:
        """Edges of every cell's `box`: top, left, bottom, right, each ``(rows, columns)``."""
        return self._edges

    def box(self, row: int, column: int) -> Box:
        """Return the part of one cell's field that lies on the input, which can be empty.

        Raises:
            SettingError: the map lacks that cell.
        """
        rows, columns = self.cells
        if not (0 <= row < rows and 0 <= column < columns):
            raise SettingError(
                say(
                    "There is no cell in row {row}, column {column}: the map has "
                    "{rows}×{columns}, counted from 0.",
                    row=row,
                    column=column,
                    rows=rows,
                    columns=columns,
                )
            )
        top, left, bottom, right = (int(edge[row, column]) for edge in self._edges)
        return top, left, bottom, right


Fields = Mapping[str, ReceptiveField]
"""Receptive fields by written address."""

_fields = Findings[Fields](_MAX_SHAPES)


def receptive_fields(model: Model, seen: tuple[int, ...] | ModelInput) -> Fields:
    """Compute the receptive field of every module's output for an input.

    Keys are written addresses: ``"layer1.0.conv1"`` for a module's first call, ``"relu#1"`` for its
    second, ``"name[0]"`` for a part of what it puts out. They are cached per network.

    `seen` is the input, or its shape, ``(C, H, W)``, for which a network that branches on values
    runs on zeros. An input of another kind, sound or a volume, has no pixels: the result is empty.
    Layers that put out windows one behind the other have no field in it.

    Raises:
        ModelError: the network can't take that input.
    """
    shape = seen if isinstance(seen, tuple) else tuple(seen.tensor.shape[1:])
    if len(shape) != 3:
        return MappingProxyType({})
    with unchanged(model.network):
        key = _key(model, seen)
        known = _fields.of(model.network)
        # Those who come meanwhile wait for the one who traces.
        with known.one_at_a_time if is_shared(model.network) else nullcontext():
            return known.find(key, lambda: _traced(model, seen, shape, key))


def _traced(
    model: Model, seen: tuple[int, ...] | ModelInput, shape: tuple[int, ...], key: object
) -> Fields:
    """Trace the fields for an input of `shape`; where its `key` is the shape, without data."""
    if isinstance(seen, tuple) or key == shape:
        layouts = layer_trace(model, shape).layouts  # refuses a shape that the network can't take
        follow = partial(trace_fields, layouts=layouts)
        found = pass_without_data(model, shape, follow)
    else:
        layouts = input_trace(model, seen).layouts
        with private_replica(model) as replica:
            run = partial(forward_pass, model, replica)
            found = trace_fields(replica, seen.tensor, layouts=layouts, run=run)
    return MappingProxyType(found)


def _key(model: Model, seen: tuple[int, ...] | ModelInput) -> tuple[int, ...] | str:
    """Return what fields are kept under: the shape where every input of it takes the same way."""
    if isinstance(seen, tuple):
        return seen
    if input_trace(model, seen).is_static:
        return tuple(seen.tensor.shape[1:])
    return f"{model.cache_key} {seen.digest}"


def are_fields_known(model: Model, seen: ModelInput) -> bool:
    """Return whether `receptive_fields` has them, and would trace nothing."""
    if seen.tensor.ndim != 4:
        return True
    with unchanged(model.network):
        return _fields.of(model.network).get(_key(model, seen)) is not None


def trace_fields(
    network: nn.Module,
    image: Tensor,
    budget: Budget | None = None,
    layouts: Mapping[ActivationKey, Layout] = MappingProxyType({}),
    run: Callable[[Tensor], object] | None = None,
) -> dict[str, ReceptiveField]:
    """Trace one pass for the field of every tensor that each call of a module puts out.

    `network` is a replica and `image` is ``(1, C, H, W)``. `layouts` are those of outputs that have
    their channels last, or are tokens. `run` makes the pass; by default the network is called.
    """
    budget = budget or Budget()
    tracer = Tracer(network, image, budget)
    fields: dict[str, ReceptiveField] = {}

    def record(call: hooks.Call) -> None:
        with not_followed():
            for path, tensor in hooks.tensors_in(call.output):
                with suppress(RuntimeError):  # a nested tensor has no shape
                    extent, shape = tracer.extent(tensor), tuple(tensor.shape)
                    address = ActivationKey(call.layer, call.index, path)
                    layout = layouts.get(address, UNKNOWN)
                    if layout.order == IN_WINDOWS:
                        continue  # whose rows and columns are not those of the map that is shown
                    fields[str(address)] = _field(
                        *_as_maps(extent, shape, layout),
                        tuple(image.shape[2:]),
                        layout.order,
                    )
                    budget.keep(extent)

    names = [name for name, _ in network.named_modules() if name]
    with (
        torch.no_grad(),
        hooks.observe(network, names, record),
        tracer,
        observe_functions(network, quiet_names(network), record),
    ):
        (run or network)(image)
    return fields


def _as_maps(
    extent: Extent | None, shape: tuple[int, ...], layout: Layout
) -> tuple[Extent | None, tuple[int, ...]]:
    """Turn an extent and a shape, with the batch, to those of maps, ``(1, C, H, W)``."""
    if layout.order not in {LAST, TOKENS}:
        return extent, shape
    shape = (shape[0], *layout.map_shape(shape[1:]))
    if extent is None:
        return None, shape
    if layout.order == LAST:
        up, left, down, right = (edge.movedim(-1, -3) for edge in extent.edges)
        turned = extent.map_axes(lambda axis: replace(axis, dim=axis.dim + 1))
        return replace(turned, edges=(up, left, down, right)), shape
    up, left, down, right = (_of_cells(edge, layout) for edge in extent.edges)
    return Extent((up, left, down, right), mixed=extent.mixed), shape


def _of_cells(edge: Tensor, layout: Layout) -> Tensor:
    if edge.shape[-2] == 1:  # all tokens see the same
        return edge.movedim(-1, -2)[..., None]
    return layout.maps(edge)


def _field(
    extent: Extent | None,
    shape: tuple[int, ...],
    image: tuple[int, ...],
    order: str = "",
) -> ReceptiveField:
    """Build the field of a tensor of `shape`, with the batch, on an image of height and width."""
    maps = len(shape) == 4
    cells = (shape[-2], shape[-1]) if maps else (1, 1)
    if extent is None or 0 in shape:
        blank = np.broadcast_to(np.int32(0), cells)
        return ReceptiveField((0, 0), (0.0, 0.0), cells, (blank,) * 4)
    boxes = _boxes(extent.edges, cells)
    if not maps:
        top, left, bottom, right = (int(edge[0, 0]) for edge in boxes)
        return ReceptiveField((bottom - top, right - left), (0.0, 0.0), cells, boxes, extent.mixed)
    in_windows = extent.mixed == WINDOWS and not (extent.rows and extent.columns)
    if order == TOKENS or (order == LAST and in_windows):
        # what each sees of the very image is all that is known
        above, before, below, behind = boxes
        seen = int((below - above).max()), int((behind - before).max())
        return ReceptiveField(
            None if seen == image else seen, (0.0, 0.0), cells, boxes, extent.mixed
        )
    rows, columns = (
        axis if axis and axis.dim in (-2, -1) else None for axis in (extent.rows, extent.columns)
    )
    height, width = rows.size if rows else image[0], columns.size if columns else image[1]
    covers = not (rows and columns) and height >= image[0] and width >= image[1]
    size = None if covers else (height, width)
    stride = (
        rows.stride if rows and rows.dim == -2 else 0.0,
        columns.stride if columns and columns.dim == -1 else 0.0,
    )
    return ReceptiveField(size, stride, cells, boxes, extent.mixed)


def _boxes(edges: Edges, cells: tuple[int, int]) -> tuple[NDArray[np.int32], ...]:
    """Return top, left, bottom and right of each cell's box, each ``(rows, columns)``.

    They are views that take no memory where all rows or all columns see the same.
    """
    maps = all(edge.ndim == 4 for edge in edges)
    flat = [edge.amax((0, 1)) if maps else edge.amax().reshape(1, 1) for edge in edges]
    up, left, down, right = (edge.nan_to_num(neginf=0).to(torch.int32).numpy() for edge in flat)
    return tuple(np.broadcast_to(edge, cells) for edge in (-up, -left, down, right))


Floats = NDArray[np.float64]
MASS = 0.95
"""The share of all |gradient| by which a field's use is measured."""


def weights_of_pixels(gradient: NDArray[np.floating]) -> Floats:
    """Sum |gradient|, ``(C, H, W)``, over the channels: a weight for each pixel, ``(H, W)``."""
    weights: Floats = np.abs(gradient).sum(0, dtype=np.float64)
    return weights


def strongest(weights: Floats, mass: float = MASS) -> NDArray[np.bool_]:
    """Mark the fewest pixels that hold a share of the mass, bool ``(H, W)``.

    The strongest come first, equal ones by position; none where there is no mass.
    """
    order = np.argsort(-weights, axis=None, kind="stable")
    filled = np.cumsum(weights.flat[order])
    chosen = np.zeros(weights.size, bool)
    if weights.size and filled[-1] > 0:
        chosen[order[: int(np.searchsorted(filled, mass * filled[-1])) + 1]] = True
    return chosen.reshape(weights.shape)
