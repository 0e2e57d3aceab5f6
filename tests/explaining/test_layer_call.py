from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layer_call import Normalisation
from hookviz.explaining.layer_recorder import record_layer_call
from hookviz.types import Model
from tests.explaining.test_cell_sum import net_with
from tests.networks import random_input


def test_a_record_knows_its_size(tiny: Model, noise: Tensor) -> None:
    call = record_layer_call(tiny, noise, "conv1")
    weights, maps = 4 * 3 * 9 + 4, 3 * 18 * 18 + 2 * 4 * 16 * 16  # one map more for the ReLU
    assert call.nbytes == 4 * (weights + maps)
    assert replace(call, steps=()).nbytes == 4 * (weights + maps - 4 * 16 * 16)


def test_the_input_is_what_lies_within_the_padding() -> None:
    call = record_layer_call(
        net_with(lambda: nn.Conv2d(4, 8, 3, padding=2)), random_input(1), "conv"
    )
    height, width = call.size
    assert call.padded.shape == (4, height + 4, width + 4)
    assert torch.equal(call.input, call.padded[:, 2:-2, 2:-2])


def test_a_channel_sees_its_group() -> None:
    call = record_layer_call(
        net_with(lambda: nn.Conv2d(4, 8, 3, groups=2)), random_input(1), "conv"
    )
    assert [call.inputs_of(channel) for channel in (0, 3, 4)] == [range(2), range(2), range(2, 4)]
    with pytest.raises(hookviz.SettingError, match="conv has no channel 8: its channels are 0 to"):
        call.inputs_of(8)


def test_a_normalisation_is_its_formula() -> None:
    assert Normalisation(1.0, 3.0, 0.5, -2.0, epsilon=1.0).apply(5.0) == (5 - 1) / 2 * 0.5 - 2
