"""Receptive rules of what moves values, joins them or mixes a dimension, without a window.

From an operation and what its first argument sees to what each of its results sees; an empty list
where the operation is none that the rule knows.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from hookviz.explaining.reach import Operation, Reach, each_edge, lengthened, shortened, union
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import function_name

VIEWS = frozenset(
    (
        *("permute", "transpose", "movedim", "swapaxes", "t", "getitem", "narrow", "select"),
        *("chunk", "split", "tensor_split", "unbind", "unsqueeze", "squeeze", "expand"),
    )
)
"""Functions that only move the values of their first argument, without a copy."""

_TOO_MANY = 1 << 26  # values of an edge; what would take more is taken to see everything


def padded(op: Operation, reach: Reach) -> list[Reach]:
    """``F.pad`` along rows and columns: zeros see nothing, mirrored cells what they mirror."""
    pads, mode = op.argument(1, "pad"), op.argument(2, "mode", "constant")
    if len(pads) > 4:
        return []
    value = -math.inf if mode == "constant" else None
    edges = []
    for edge, own in zip(reach, (-2, -1, -2, -1), strict=True):
        # Along an axis in which an edge is the same all along it stays short: a cell that is added
        # there sees nothing as soon as the edges of the other axis say so.
        axes = [axis for axis in (-2, -1) if axis == own or edge.shape[axis] > 1]
        sizes = [op.shapes[0][axis] if axis in axes else edge.shape[axis] for axis in (-2, -1)]
        around = [
            *((pads[0], pads[1]) if -1 in axes else (0, 0)),
            *((pads[2], pads[3]) if -2 in axes and len(pads) == 4 else (0, 0)),
        ]
        full = edge.expand(*edge.shape[:-2], *sizes)
        edges.append(F.pad(full, around, mode, value))
    return [shortened(*edges)]


def moved(op: Operation, reach: Reach) -> list[Reach]:
    """Values in another order: the edges go the same way."""
    if op.shapes[0].numel() > _TOO_MANY and function_name(op.func) not in VIEWS:
        return []
    edges = [
        [tensor for _, tensor in hooks.tensors_in(op.func(edge, *op.args[1:], **op.kwargs))]
        for edge in (edge.expand(op.shapes[0]) for edge in reach)
    ]
    return [shortened(up, left, down, right) for up, left, down, right in zip(*edges, strict=True)]


def reshaped(op: Operation, reach: Reach) -> list[Reach]:
    """Values in another shape, in the same order."""
    shape = op.results[0].shape
    try:
        return [shortened(*(edge.expand(op.shapes[0]).view(shape) for edge in reach))]
    except RuntimeError:  # it takes a copy
        if shape.numel() > _TOO_MANY:
            return []
        return [shortened(*(edge.expand(op.shapes[0]).reshape(shape) for edge in reach))]


def reduced(op: Operation, reach: Reach) -> list[Reach]:
    """A reduction, such as a mean: everything along the dimensions that it is over."""
    dims = op.argument(1, "dim", op.kwargs.get("axis"))
    if not isinstance(dims, int | list | tuple) or dims in ([], ()):
        return []
    flat = each_edge(reach, lambda edge: edge.amax(dims, keepdim=True))
    if op.results[0].ndim < len(op.shapes[0]):
        flat = each_edge(flat, lambda edge: edge.amax(dims))
    return [flat] * len(op.results)


def mixed(op: Operation, reach: Reach) -> list[Reach]:
    """A linear layer mixes the last dimension; a layer norm as many as it was made for."""
    normed = op.argument(1, "normalized_shape") if function_name(op.func) == "layer_norm" else (0,)
    dims = tuple(range(-len(normed), 0))
    return [each_edge(reach, lambda edge: edge.amax(dims, keepdim=True))]


def joined(op: Operation) -> Reach:
    """Tensors one behind the other; along the channels they count together."""
    result = op.results[0]
    dim = int(op.argument(1, "dim", op.kwargs.get("axis", 0))) % result.ndim
    if dim < 2:
        return union(
            [each_edge(r, lambda e: e.amax(dim, keepdim=True)) for r in op.reaches if r],
            result.ndim,
        )
    parts = [
        lengthened(reach or union([], result.ndim), shape, axes=(dim,))
        for reach, shape in zip(op.reaches, op.shapes, strict=True)
    ]
    edges = []
    for edge in range(4):
        sizes = np.broadcast_shapes(*(part[edge].narrow(dim, 0, 1).shape for part in parts))
        edges.append(
            torch.cat(
                [part[edge].expand(*sizes[:dim], -1, *sizes[dim + 1 :]) for part in parts], dim
            )
        )
    return edges[0], edges[1], edges[2], edges[3]
