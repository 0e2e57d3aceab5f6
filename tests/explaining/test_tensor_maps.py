import numpy as np
import pytest
from torch import nn

from hookviz.explaining.tensor_maps import tensor_maps

RELU, CONV, NORM = nn.ReLU(), nn.Conv2d(1, 1, 1), nn.LayerNorm(4)


@pytest.mark.parametrize(
    ("shape", "module", "maps", "read"),
    [
        ((1, 4, 7, 9), CONV, (4, 7, 9), ""),
        ((3, 4, 7, 9), CONV, (4, 7, 9), "the first of 3 in the batch"),
        ((1, 7, 9, 4), NORM, (4, 7, 9), "channels last: rows × columns × channels"),
        ((1, 8, 8, 32), RELU, (32, 8, 8), "channels last: rows × columns × channels"),
        ((1, 32, 8, 8), RELU, (32, 8, 8), ""),
        ((1, 5), RELU, (5, 1, 1), "a vector, one cell per number"),
        ((1, 6, 5), RELU, (1, 6, 5), "a row per place, a column per feature"),
        ((1, 2, 3, 4, 5), RELU, (6, 4, 5), "leading dimensions laid out one after the other"),
        ((), RELU, (1, 1, 1), ""),
    ],
)
def test_any_shape_is_read_as_channels(
    shape: tuple[int, ...], module: nn.Module, maps: tuple[int, ...], read: str
) -> None:
    values, says = tensor_maps(np.zeros(shape, np.float32), module, 1.0)
    assert values is not None
    assert (values.shape, says) == (maps, read)


def test_nothing_is_not_drawn() -> None:
    assert tensor_maps(np.zeros((1, 0, 4), np.float32), RELU, 1.0) == (None, "empty")
