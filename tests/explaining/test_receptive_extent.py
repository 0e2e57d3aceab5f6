import math
from typing import Any

import pytest
import torch

from hookviz.explaining.receptive_extent import (
    Edges,
    Operation,
    TooManyValuesError,
    merge_edges,
    merge_extents,
    no_edges,
    pixel_extent,
    reduce_extents,
)


def values(edges: Edges) -> list[list[float]]:
    return [edge.flatten().tolist() for edge in edges]


def test_a_union_sees_what_either_sees_and_nothing_of_neither() -> None:
    here, far = (torch.tensor([value]) for value in (1.0, 5.0))
    edges = merge_edges([(here, far, here, far), (far, here, here, here)], 1)
    assert values(edges) == [[5.0], [5.0], [1.0], [5.0]]
    assert values(merge_edges([], 1)) == values(no_edges(1)) == [[-math.inf]] * 4
    assert merge_extents([None, None], 4) is None
    pixels = pixel_extent(torch.empty(1, 3, 2, 4))
    assert merge_extents([None, pixels], 4) is pixels
    both: Any = merge_extents([pixels, reduce_extents([pixels], 4)], 4)
    assert both.rows is None  # all of an unbounded image


def test_an_argument_goes_by_position_or_name() -> None:
    op = Operation(torch.cat, ("a",), {"dim": 2}, [], [], [], max_values=10)
    assert (op.argument(0, "tensors"), op.argument(1, "dim"), op.argument(2, "out", 7)) == (
        *("a", 2, 7),
    )
    op.check(10)
    with pytest.raises(TooManyValuesError):
        op.check(11)
