import io

import numpy as np
import torch
from torch import nn

import hookviz
from hookviz.export import npz
from hookviz.types import Model
from tests.conftest import as_model, random_input


def test_an_npz_holds_every_activation_and_the_input(tiny: Model) -> None:
    cap = hookviz.capture(tiny, random_input(1), ["conv1", "relu"])
    with np.load(io.BytesIO(npz(cap)), allow_pickle=False) as loaded:
        assert set(loaded.files) == {"input", "conv1", "relu", "relu#1"}
        for address, part in cap.items():
            np.testing.assert_array_equal(loaded[address], part.values.numpy())
        np.testing.assert_array_equal(loaded["input"], cap.input.numpy())


def test_any_layer_name_will_do() -> None:
    model = as_model(nn.Sequential())
    model.network.add_module("file", nn.Conv2d(3, 2, 1))
    cap = hookviz.capture(model, torch.zeros(1, 3, 4, 4))
    with np.load(io.BytesIO(npz(cap))) as loaded:
        assert loaded["file"].shape == (2, 4, 4)
