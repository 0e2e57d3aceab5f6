"""Compute the receptive field of each layer's cells on the network's input: size, stride and boxes.

One pass over the network traces every tensor with four edges: the first and the last row and
column of the input that each of its values depends on. A convolution or a pooling takes the
furthest edge under its window, arithmetic the furthest of its operands, and a function that
rearranges values (view, permute, chunk) rearranges the edges in the same way. The result of any
other function is taken to depend on all that its arguments depend on, and a tensor of unknown
origin on all of the image. So a field can come out too large, never too small.

Beside the edges goes what rows and columns would see of an unbounded image: windows are the same
all along a map, so a few cells tell it. Beyond 2 s or 200 MB nothing is traced any more.

Branches, groups, dilation and padding are those of this very network; values and weights don't
matter, so a weight of 0 counts as seen. A branch that the code chooses by values counts where the
input is given, and not its shape alone.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace, layer_trace
from hookviz.capturing.layers import quiet_names
from hookviz.errors import SettingError
from hookviz.explaining.receptive_fields.attention_rules import WINDOWS
from hookviz.explaining.receptive_fields.extent import Edges, Extent
from hookviz.explaining.receptive_fields.tracer import Budget, Tracer
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, pass_without_data, private_replica
from hookviz.hooking.function_calls import observe_functions
from hookviz.hooking.network_state import Findings, is_shared, unchanged
from hookviz.hooking.torch_functions import not_followed
from hookviz.language.saying import say
from hookviz.types import LAST, TOKENS, UNKNOWN, ActivationKey, Layout, Model, ModelInput
from hookviz.types import WINDOWS as IN_WINDOWS

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

_fields = Findings[Fields](_MAX_SHAPES)


def receptive_fields(model: Model, seen: tuple[int, ...] | ModelInput) -> Fields:
    """Compute the receptive field of every module's output for an input.

    Keys are written addresses: ``"layer1.0.conv1"`` for a module's first call, ``"relu#1"`` for its
    second, ``"name[0]"`` for a part of what it puts out. They are cached per network.

    Args:
        model: from `load_model` or `wrap`.
        seen: the input, or its shape, ``(C, H, W)``, of which a network whose way depends on values
            goes the way of zeros. An input of another kind, sound or a volume, has no pixels to
            see: the result is empty. Layers that put out windows one behind the other have no
            field in it.

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
        layouts = layer_trace(model, shape).layouts  # says what is wrong with the shape
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

    Args:
        network: a replica.
        image: ``(1, C, H, W)``.
        budget: for tracing the pass; `Budget`'s defaults if None.
        layouts: of outputs that have their channels last, or are tokens.
        run: makes the pass; calls the network if None.
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
