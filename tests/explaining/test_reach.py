import math

import torch

from hookviz.explaining.reach import (
    Operation,
    Reach,
    each_edge,
    lengthened,
    of_pixels,
    shortened,
    total,
    union,
)


def edges(reach: Reach) -> list[list[float]]:
    return [edge.flatten().tolist() for edge in reach]


def test_a_pixel_sees_itself() -> None:
    up, left, down, right = of_pixels(torch.empty(1, 3, 2, 4, device="meta"))
    assert up.shape == down.shape == (1, 1, 2, 1)
    assert left.shape == right.shape == (1, 1, 1, 4)
    assert edges((up, left, down, right)) == [[0, -1], [0, -1, -2, -3], [1, 2], [1, 2, 3, 4]]


def test_a_union_sees_what_either_sees_and_nothing_of_neither() -> None:
    here, far = (torch.tensor([value]) for value in (1.0, 5.0))
    assert edges(union([(here, far, here, far), None, (far, here, here, here)], 1)) == [
        *([5.0], [5.0], [1.0], [5.0])
    ]
    assert edges(union([None], 1)) == [[-math.inf]] * 4


def test_what_depends_on_everything_sees_the_furthest_of_all() -> None:
    whole = total([of_pixels(torch.empty(1, 3, 4, 6))], 2)
    assert edges(whole) == [[0], [0], [4], [6]]
    assert all(edge.ndim == 2 for edge in whole)


def test_an_edge_is_full_where_asked_and_short_again() -> None:
    reach = of_pixels(torch.empty(1, 3, 2, 4))
    full = lengthened(reach, (1, 3, 2, 4), axes=(-2, -1))
    assert [tuple(edge.shape) for edge in full] == [(1, 1, 2, 4)] * 4
    assert [edge.shape for edge in shortened(*full)] == [edge.shape for edge in reach]
    assert edges(each_edge(reach, torch.neg))[0] == [0, 1]


def test_an_argument_goes_by_position_or_name() -> None:
    op = Operation(torch.cat, ("a",), {"dim": 2}, [], [], [])
    assert (op.argument(0, "tensors"), op.argument(1, "dim"), op.argument(2, "out", 7)) == (
        *("a", 2, 7),
    )
