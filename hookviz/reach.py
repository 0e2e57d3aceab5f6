"""How far each value of a tensor sees on a network's input, and what torch's operations make of it.

Every value depends on a rectangle of input pixels, its reach. `through` turns the reaches of an
operation's arguments into those of its results. It knows torch's own operations ("aten") rather
than modules, so whatever a network's code does between its layers is followed as well. What an
operation without a rule computes is taken to depend on all that its arguments depend on: a
rectangle can come out too large, never too small.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

_NOTHING = -math.inf


class Reach(NamedTuple):
    """The rectangle of input pixels that each value of one tensor depends on.

    Attributes:
        edges: up, left, down, right. Each has as many dimensions as the tensor, and one of length 1
            stands for all values along it. Up and left are the first row and column, negated; down
            and right are the row and column after the last. So a larger number always sees more:
            a union is the maximum, and what depends on nothing has -inf.
        steps: rows and columns of the input from one cell to the next; for a map with a single
            cell, whose edges can't tell.
    """

    edges: tuple[Tensor, ...]
    steps: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """One call of one of torch's operations.

    Attributes:
        func: torch's ``OpOverload``.
        args: as it was called.
        given: every argument by its name in torch's schema, in order, defaults included.
        results: the tensors that it returned.
        beyond: whether padding is taken for more image, so that rectangles reach past the border
            as if the image went on; otherwise padding shows nothing.
    """

    func: Any
    args: tuple[Any, ...]
    given: dict[str, Any]
    results: Sequence[Tensor]
    beyond: bool

    @property
    def name(self) -> str:
        """The operation's name, such as ``"convolution"`` or ``"relu_"``."""
        name: str = self.func._schema.name.removeprefix("aten::")
        return name

    @property
    def shape(self) -> torch.Size:
        """The shape of its first argument."""
        shape: torch.Size = self.args[0].shape
        return shape


def of_pixels(height: int, width: int) -> Reach:
    """The reach of a ``(1, C, height, width)`` input: every value sees its own pixel."""
    rows = torch.arange(height, dtype=torch.float32).reshape(1, 1, -1, 1)
    columns = torch.arange(width, dtype=torch.float32).reshape(1, 1, 1, -1)
    return Reach((-rows, -columns, rows + 1, columns + 1), (1.0, 1.0))


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among `values` and in the lists and tuples among them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_in(value))
    return found


def union(reaches: Iterable[Reach | None], ndim: int) -> Reach | None:
    """What a tensor of `ndim` dimensions sees if it is computed from others value by value."""
    found: Reach | None = None
    for reach in filter(None, reaches):
        edges = tuple(edge[(None,) * (ndim - edge.ndim)] for edge in reach.edges)
        if found is None:
            found = Reach(edges, reach.steps)
        else:
            widest = tuple(torch.maximum(*pair) for pair in zip(found.edges, edges, strict=True))
            steps = (min(found.steps[0], reach.steps[0]), min(found.steps[1], reach.steps[1]))
            found = Reach(widest, steps)
    return found


def total(reaches: Iterable[Reach | None], ndim: int) -> Reach | None:
    """What a tensor of `ndim` dimensions sees if all of it depends on all of the others."""
    flat = (
        Reach(tuple(edge.amax().reshape((1,) * ndim) for edge in reach.edges))
        for reach in filter(None, reaches)
    )
    return union(flat, ndim)


def through(op: Operation, known: Callable[[Tensor], Reach | None]) -> list[Reach | None]:
    """The reach of each of an operation's results; None where nothing of the input went in.

    Args:
        op: the operation, after its call.
        known: gives a tensor's reach as it was before the call.
    """
    name = op.name
    sources = tensors_in(op.given.values())
    if name in _MAKES_NEW or not any(map(known, sources)):
        return [None] * len(op.results)
    if torch.Tag.pointwise in op.func.tags or name in _POINTWISE:
        return [union(map(known, sources), tensor.ndim) for tensor in op.results]
    found: list[Reach] = []
    followed = "mat1" if name == "addmm" else next(iter(op.given))
    if name == "cat":
        found = [_cat(op, known)]
    elif name in _RULES and (reach := known(op.given[followed])):
        found = _RULES[name](op, reach)
    weights = tensors_in(value for key, value in op.given.items() if key != followed)
    return [
        union([found[place], total(map(known, weights), tensor.ndim)], tensor.ndim)
        if place < len(found)
        else total(map(known, sources), tensor.ndim)
        for place, tensor in enumerate(op.results)
    ]


def _convolution(op: Operation, reach: Reach) -> list[Reach]:
    given, channels = op.given, op.results[0].shape[1]
    groups: int = given["groups"]
    if groups > 1:  # a group sees its own input channels only
        edges = tuple(
            edge
            if edge.shape[1] == 1
            else edge.unflatten(1, (groups, -1))
            .amax(2)
            .repeat_interleave(channels // groups, 1)
            for edge in reach.edges
        )
    else:
        edges = tuple(edge.amax(1, keepdim=True) for edge in reach.edges)
    mixed = Reach(edges, reach.steps)
    kernel = given["weight"].shape[2:]
    if given["transposed"]:
        return [_transposed(op, mixed, kernel)]
    return [_windows(op, mixed, kernel, given["stride"], given["padding"], given["dilation"])]


def _pool(op: Operation, reach: Reach) -> list[Reach]:
    given = op.given
    kernel = given["kernel_size"]
    stride = given["stride"] or kernel
    dilation = given.get("dilation", [1])
    return [_windows(op, reach, kernel, stride, given["padding"], dilation)]


def _windows(op: Operation, reach: Reach, *hyper: Any) -> Reach:
    """Kernel, stride, padding and dilation slid over the last dimensions, as far as results go."""
    ...
