import numpy as np
import pytest
import torch
from torch import Tensor

from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.layers.layer_io import layer_io, tensor_maps
from hookviz.types import UNKNOWN, Layout, Model


def test_an_in_place_layer_shows_what_it_wrote_over(tiny: Model, noise: Tensor) -> None:
    conv = tiny.network.get_submodule("conv1")
    call = layer_io(tiny, prepare_input(tiny, noise), "relu")
    ((path, layer_input),), ((_, output),) = call.inputs, call.outputs
    assert path == ("0",)
    assert torch.equal(layer_input, conv(noise))
    assert torch.equal(output, conv(noise).relu())
    assert call.others == ()
    relu = tiny.network.get_submodule("relu")
    assert call.in_place is bool(getattr(relu, "inplace", False))


def test_a_later_call_is_another_one(tiny: Model, noise: Tensor) -> None:
    shares: list[float] = []
    call = layer_io(tiny, prepare_input(tiny, noise), "relu", 1, shares.append)
    assert call.outputs[0][1].shape == (1, 6, 7, 7)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8])  # the head does not run


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


def test_tokens_lie_row_by_row_behind_those_of_no_cell_and_nothing_is_not_drawn() -> None:
    values, _ = tensor_maps(np.arange(7, dtype=np.float32).reshape(1, 7, 1), TOKENS)
    np.testing.assert_array_equal(values, [[[1, 2, 3], [4, 5, 6]]])
    assert tensor_maps(np.zeros((1, 0, 4), np.float32), UNKNOWN) == (None, "empty")
