"""How far each cell of a layer sees: its receptive field on the network's input.

One pass over the network follows every tensor with four edges: the first and the last row and
column of the input that each of its values depends on. A convolution or a pooling takes the
furthest edge under its window, arithmetic the furthest of its operands, and what moves values
(view, permute, chunk) moves the edges in the same way. What any other function computes is taken
to depend on all that its arguments depend on. So a field can come out too large, never too small.

Branches, groups, dilation and padding are those of this very network; values and weights don't
matter, so a weight of 0 counts as seen.
"""

import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.capturing.survey import survey
from hookviz.errors import SettingError
from hookviz.explaining.reach import Operation, Reach, each_edge, of_pixels, total, union
from hookviz.explaining.receptive_rules import through
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import device_and_dtype, pass_without_data
from hookviz.hooking.torch_functions import EveryFunction, TensorMarks, not_followed, version
from hookviz.language.saying import say
from hookviz.types import Address, Model

Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels of the input; the last row and column are not included."""

_ROOM = 8192  # side in pixels of an input on which a field that has an end shows its whole size
_MOST_SHAPES = 8  # input shapes per network that are remembered

_known: MutableMapping[nn.Module, dict[tuple[int, ...], "Fields"]] = WeakIdKeyDictionary()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False, slots=True)
class ReceptiveField:
    """Which pixels of the input the cells of one layer's maps depend on.

    A field is the smallest rectangle that holds all of them, over all channels: dilated kernels
    leave pixels out of it.

    Attributes:
        size: height and width in pixels, as though the image went on for ever; None where every
            cell sees all of an image of any size, as behind squeeze-and-excitation.
        stride: rows and columns of the input from one cell's field to the next one's.
        cells: rows and columns of the map; (1, 1) for a layer that puts out no maps.
    """

    size: tuple[int, int] | None
    stride: tuple[float, float]
    cells: tuple[int, int]
    _edges: tuple[NDArray[np.int32], ...] = field(repr=False)

    def box(self, row: int, column: int) -> Box:
        """The part of one cell's field that lies on the input; empty where it sees nothing of it.

        Raises:
            SettingError: the map has no such cell.
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


def receptive_fields(model: Model, shape: tuple[int, ...]) -> Fields:
    """The receptive field of everything that the modules put out for an input of `shape`.

    Keys are written addresses: ``"layer1.0.conv1"`` for a module's first call, ``"relu#1"`` for its
    second, ``"name[0]"`` for a part of what it puts out. They are remembered per network.

    Args:
        model: from `load_model` or `wrap`.
        shape: ``(C, H, W)``; an input of another kind, sound or a volume, has no pixels to see, and
            nothing is told of it.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    if len(shape) != 3:
        return MappingProxyType({})
    with _lock:
        known = _known.setdefault(model.network, {})
        if shape in known:
            return known[shape]
    survey(model, shape)  # says what is wrong with the shape, where something is
    inside = pass_without_data(model, shape, _reaches)
    hollow, dtype = replicas.shapes_only(model.network), device_and_dtype(model.network)[1]
    large = torch.empty(1, shape[0], _ROOM, _ROOM, device="meta", dtype=dtype)
    roomy = _reaches(hollow, large, to_the_end=False)
    fields = MappingProxyType(
        {address: _field(seen, roomy.get(address), shape[1:]) for address, seen in inside.items()}
    )
    with _lock:
        while len(known) >= _MOST_SHAPES:
            known.pop(next(iter(known)))
        known[shape] = fields
    return fields


class _Tracer(EveryFunction):
    """While it is entered, knows of each tensor that is computed from `image` what it sees."""

    def __init__(self, image: Tensor) -> None:
        super().__init__()
        self._reaches = TensorMarks[Reach]()
        self._reaches[image] = of_pixels(image)

    def reach(self, tensor: Tensor) -> Reach | None:
        """What `tensor` sees; None where nothing of the image went into it."""
        return self._reaches.get(tensor)

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives, with what its results see taken down."""
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        if not any(map(self.reach, operands)):
            return func(*args, **kwargs)
        reaches = [self.reach(tensor) for tensor in operands]
        shapes, versions = ([t.shape for t in operands], [version(t) for t in operands])
        output = func(*args, **kwargs)
        results = [tensor for _, tensor in hooks.tensors_in(output)]
        op = Operation(func, args, kwargs, shapes, reaches, results)
        for tensor, reach in zip(results, through(op), strict=True):
            self._reaches[tensor] = reach
        several = len(list(filter(None, reaches))) > 1
        for tensor, before in zip(operands, versions, strict=True):
            if version(tensor) != before and (several or not results):
                self._spread(tensor, total(reaches, 0), but=results)
        return output

    def _spread(self, written: Tensor, reach: Reach, but: Sequence[Tensor]) -> None:
        """Add to whatever shares the memory that was written to what went in there."""
        memory = written.untyped_storage()._cdata
        for tensor, known in list(self._reaches):
            if any(tensor is result for result in but):
                continue
            if tensor.untyped_storage()._cdata == memory:
                self._reaches[tensor] = union([known, reach], tensor.ndim)
        if self.reach(written) is None:
            self._reaches[written] = union([reach], written.ndim)


_Seen = tuple[Reach | None, tuple[int, ...]]
"""What a tensor sees, and its shape with the batch."""


def _reaches(network: nn.Module, image: Tensor, *, to_the_end: bool = True) -> dict[str, _Seen]:
    """What each output of each module sees; as far as the pass comes, unless it has to end well."""
    tracer = _Tracer(image)
    seen: dict[str, _Seen] = {}

    def see(call: hooks.Call) -> None:
        with not_followed():
            for path, tensor in hooks.tensors_in(call.output):
                address = str(Address(call.layer, call.index, path))
                seen[address] = tracer.reach(tensor), tuple(tensor.shape)

    names = [name for name, _ in network.named_modules() if name]
    try:
        with torch.no_grad(), hooks.observe(network, names, see), tracer:
            network(image)
    except Exception:
        if to_the_end:
            raise
    return seen


def _field(inside: _Seen, roomy: _Seen | None, image: tuple[int, ...]) -> ReceptiveField:
    reach, shape = inside
    cells = (shape[-2], shape[-1]) if len(shape) == 4 else (1, 1)
    edges = _edges(reach, cells)
    size: tuple[int, int] | None
    size = int((edges[2] - edges[0]).max()), int((edges[3] - edges[1]).max())
    stride = (0.0, 0.0)
    if roomy is not None and len(shape) == 4:
        rows, columns = roomy[1][-2:]
        across = _edges(_line(roomy[0], -2, rows // 2), (1, columns))
        down = _edges(_line(roomy[0], -1, columns // 2), (rows, 1))
        top, left, bottom, right = (int(edge[0, columns // 2]) for edge in across)
        stride = _step(down[0][:, 0]), _step(across[1][0])
        # about the middle, from where a field that has an end does not reach the image's edges
        if max(bottom - top, right - left) < _ROOM // 2:
            size = bottom - top, right - left
        elif size[0] >= image[0] and size[1] >= image[1]:
            size = None
    return ReceptiveField(size, stride, cells, edges)


def _edges(reach: Reach | None, cells: tuple[int, int]) -> tuple[NDArray[np.int32], ...]:
    """Top, left, bottom and right of every cell's box over all channels, each ``(rows, columns)``.

    They are views that take no memory where all rows or all columns see the same.
    """
    if reach is None:
        return (np.broadcast_to(np.int32(0), cells),) * 4
    maps = all(edge.ndim == 4 for edge in reach)
    flat = [edge.amax((0, 1)) if maps else edge.amax().reshape(1, 1) for edge in reach]
    up, left, down, right = (edge.nan_to_num(neginf=0).to(torch.int32).numpy() for edge in flat)
    return tuple(np.broadcast_to(edge, cells) for edge in (-up, -left, down, right))


def _line(reach: Reach | None, dim: int, place: int) -> Reach | None:
    """What one row or column of cells sees: all that is asked for of a large map, and quickly."""
    if reach is None or any(edge.ndim != 4 for edge in reach):
        return reach
    return each_edge(reach, lambda e: e if e.shape[dim] == 1 else e.narrow(dim, place, 1))


def _step(line: NDArray[np.int32]) -> float:
    """How far an edge moves from one cell to the next about the middle, on average over a few."""
    centre = len(line) // 2
    reach = min(8, centre, len(line) - 1 - centre)
    if reach < 1:
        return 0.0
    return float(line[centre + reach] - line[centre - reach]) / (2 * reach)
