"""Compute receptive fields through attention and products of matrices, and tell that they attend.

What a query becomes sees the query, and every key and value beside it: those of its window, where
windows lie one behind the other in the batch. A mask may shut some of them out, so the field can be
too large, never too small.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from hookviz.explaining.receptive_fields.extent import (
    Edges,
    Extent,
    Operation,
    map_edges,
    merge_edges,
    merge_extents,
    reduce_extents,
)
from hookviz.hooking.torch_functions import function_name

ALL, WINDOWS = "all", "windows"
"""What attention has mixed, as `Extent.mixed` has it: all there was, or the cells of windows."""

PRODUCTS = frozenset(("matmul", "bmm"))
_FUSED = "scaled_dot_product_attention"
_WHOLE = "multi_head_attention_forward"
_LEVELS = ("", WINDOWS, ALL)


def product_rule(op: Operation) -> list[Extent]:
    """Follow a product of matrices: each value sees a row of the one and a column of the other."""
    if len(op.extents) != 2 or min(map(len, op.shapes)) < 2:
        return []
    ndim, (left, right) = op.results[0].ndim, op.extents
    parts = [_along(left, -1, ndim), _along(right, -2, ndim)]
    _check(op, parts)
    merged = merge_extents(parts, ndim)
    if merged is None or (left is not None and right is not None):
        return [] if merged is None else [Extent(merged.edges)]
    shape = op.shapes[0] if right is None else op.shapes[1]
    wide = op.results[0].shape
    return [merged.map_axes(lambda axis: axis if shape[axis.dim] == wide[axis.dim] else None)]


def attention_rule(op: Operation) -> list[Extent]:
    """Follow `F.scaled_dot_product_attention`: (…, queries, channels) by (…, keys, channels)."""
    return _attended(op, tokens=-2)


def multi_head_rule(op: Operation) -> list[Extent]:
    """Follow `F.multi_head_attention_forward`, which has its tokens first, and then the batch."""
    return _attended(op, tokens=0)


def marked(op: Operation, results: Sequence[Extent | None]) -> list[Extent | None]:
    """Note in what an operation makes whether attention has mixed cells on the way to it."""
    seen = [extent for extent in op.extents if extent]
    name = function_name(op.func)
    is_product = name in PRODUCTS
    levels = [extent.mixed for extent in seen]
    if name in (_FUSED, _WHOLE) and len(op.extents) > 2:
        levels.append(_level(op.extents[2], tokens=0 if name == _WHOLE else -2))
    elif is_product and any(extent.is_weights for extent in seen):
        levels.append(_level(op.extents[-1], tokens=-2))
    mixed = max(levels, key=_LEVELS.index, default="")
    alone = len(seen) == 1 and seen[0].is_weights and not is_product
    is_weights = name == "softmax" or alone
    return [
        extent
        if extent is None or (extent.mixed, extent.is_weights) == (mixed, is_weights)
        else replace(extent, mixed=mixed, is_weights=is_weights)
        for extent in results
    ]


def _attended(op: Operation, tokens: int) -> list[Extent]:
    if len(op.args) < 3 or not all(isinstance(each, Tensor) for each in op.args[:3]):
        return []
    ndim = len(op.shapes[0])
    parts = [_along(op.extents[0], -1, ndim)]
    for extent in op.extents[1:3]:
        edges = extent and map_edges(extent.edges, lambda e: e.amax((tokens, -1), keepdim=True))
        parts.append(edges and Extent(edges))
    parts.append(reduce_extents(op.extents[3:], ndim))
    _check(op, parts)
    edges = merge_edges((part.edges for part in parts if part), ndim)
    return [Extent(edges)]


def _along(extent: Extent | None, dim: int, ndim: int) -> Extent | None:
    """Return the extent of what is made of all along one dimension, in `ndim` dimensions."""
    if extent is None:
        return None

    def reduced(edge: Tensor) -> Tensor:
        edge = edge.amax(dim, keepdim=True)
        return edge.reshape((1,) * (ndim - edge.ndim) + tuple(edge.shape))

    kept = extent.map_axes(lambda axis: None if axis.dim == dim else axis)
    return replace(kept, edges=map_edges(extent.edges, reduced))


def _check(op: Operation, parts: Sequence[Extent | None]) -> None:
    """Refuse to make edges that would take too much memory."""
    edges: list[Edges] = [part.edges for part in parts if part]
    for number in range(4):
        op.check(math.prod(np.broadcast_shapes(*(tuple(each[number].shape) for each in edges))))


def _level(values: Extent | None, tokens: int) -> str:
    """Return whether all queries are answered with the same values, or with those of windows."""
    if values is None:
        return ""
    for edge in values.edges:
        each = edge.amax((tokens, -1))
        if bool((each != each.flatten()[0]).any()):
            return WINDOWS
    return ALL
