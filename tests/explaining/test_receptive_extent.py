import math

import pytest
import torch

from hookviz.explaining.receptive_extent import (
    Edges,
    Operation,
    TooManyValuesError,
    broadcast_extent,
    collapse_edges,
    expand_edges,
    full_extent,
    map_edges,
    merge_edges,
    merge_extents,
    no_edges,
    pixel_extent,
    reduce_extents,
)


def values(edges: Edges) -> list[list[float]]:
    return [edge.flatten().tolist() for edge in edges]


def test_a_pixel_sees_itself() -> None:
    extent = pixel_extent(torch.empty(1, 3, 2, 4, device="meta"))
    up, left, down, right = extent.edges
    assert up.shape == down.shape == (1, 1, 2, 1)
    assert left.shape == right.shape == (1, 1, 1, 4)
    assert values(extent.edges) == [[0, -1], [0, -1, -2, -3], [1, 2], [1, 2, 3, 4]]
    assert extent.rows is not None
    assert extent.columns is not None
    assert (extent.rows.dim, extent.columns.dim) == (-2, -1)


def test_a_union_sees_what_either_sees_and_nothing_of_neither() -> None:
    here, far = (torch.tensor([value]) for value in (1.0, 5.0))
    edges = merge_edges([(here, far, here, far), (far, here, here, here)], 1)
    assert values(edges) == [[5.0], [5.0], [1.0], [5.0]]
    assert values(merge_edges([], 1)) == values(no_edges(1)) == [[-math.inf]] * 4
    assert merge_extents([None, None], 4) is None
    pixels = pixel_extent(torch.empty(1, 3, 2, 4))
    assert merge_extents([None, pixels], 4) is pixels
    both = merge_extents([pixels, reduce_extents([pixels], 4)], 4)
    assert both is not None
    assert both.rows is None  # all of an endless image


def test_what_depends_on_everything_sees_the_furthest_of_all() -> None:
    image = torch.empty(1, 3, 4, 6)
    whole = reduce_extents([pixel_extent(image)], 2)
    assert whole is not None
    assert values(whole.edges) == values(full_extent(image, 2).edges) == [[0], [0], [4], [6]]
    assert all(edge.ndim == 2 for edge in whole.edges)
    assert whole.rows is whole.columns is full_extent(image, 2).rows is None
    assert reduce_extents([None], 2) is None


def test_a_row_that_is_repeated_has_no_line() -> None:
    row = pixel_extent(torch.empty(1, 3, 1, 4))
    spread = broadcast_extent(row, (1, 3, 1, 4), (1, 3, 5, 4))
    assert spread is not None
    assert spread.rows is None
    assert spread.columns is row.columns


def test_an_edge_is_full_where_asked_and_short_again() -> None:
    edges = pixel_extent(torch.empty(1, 3, 2, 4)).edges
    full = expand_edges(edges, (1, 3, 2, 4), axes=(-2, -1))
    assert [tuple(edge.shape) for edge in full] == [(1, 1, 2, 4)] * 4
    assert [edge.shape for edge in collapse_edges(full)] == [edge.shape for edge in edges]
    assert values(map_edges(edges, torch.neg))[0] == [0, 1]


def test_an_argument_goes_by_position_or_name() -> None:
    op = Operation(torch.cat, ("a",), {"dim": 2}, [], [], [], max_values=10)
    assert (op.argument(0, "tensors"), op.argument(1, "dim"), op.argument(2, "out", 7)) == (
        *("a", 2, 7),
    )
    op.check(10)
    with pytest.raises(TooManyValuesError):
        op.check(11)
