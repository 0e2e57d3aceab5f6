import numpy as np
import pytest

from hookviz.explaining.tensor_maps import tensor_maps
from hookviz.types import UNKNOWN, Layout

FIRST, LAST, VECTORS = map(Layout, ("channels first", "channels last", "vectors"))
TOKENS = Layout("tokens", prefix_tokens=1, grid=(2, 3))


@pytest.mark.parametrize(
    ("shape", "layout", "maps", "read"),
    [
        ((1, 4, 7, 9), FIRST, (4, 7, 9), ""),
        ((4, 7, 9), Layout("channels first", batch=False), (4, 7, 9), ""),
        ((3, 4, 7, 9), FIRST, (4, 7, 9), "the first of 3 in the batch"),
        ((1, 7, 9, 4), LAST, (4, 7, 9), "channels last: rows × columns × channels"),
        ((1, 7, 5), TOKENS, (5, 2, 3), "tokens, one per cell, without the first 1"),
        ((1, 8, 8, 32), UNKNOWN, (8, 8, 32), ""),
        ((1, 6, 5), VECTORS, (1, 6, 5), "a row per place, a column per feature"),
        ((1, 5), VECTORS, (5, 1, 1), "a vector, one cell per number"),
        ((1, 6, 5), UNKNOWN, (1, 6, 5), "a row per place, a column per feature"),
        ((1, 2, 3, 4, 5), UNKNOWN, (6, 4, 5), "leading dimensions laid out one after the other"),
        ((), UNKNOWN, (1, 1, 1), ""),
    ],
)
def test_any_shape_is_read_as_channels(
    shape: tuple[int, ...], layout: Layout, maps: tuple[int, ...], read: str
) -> None:
    values, says = tensor_maps(np.zeros(shape, np.float32), layout)
    assert values is not None
    assert (values.shape, says) == (maps, read)


def test_tokens_lie_row_by_row_behind_those_of_no_cell() -> None:
    values, _ = tensor_maps(np.arange(7, dtype=np.float32).reshape(1, 7, 1), TOKENS)
    np.testing.assert_array_equal(values, [[[1, 2, 3], [4, 5, 6]]])


def test_nothing_is_not_drawn() -> None:
    assert tensor_maps(np.zeros((1, 0, 4), np.float32), UNKNOWN) == (None, "empty")
