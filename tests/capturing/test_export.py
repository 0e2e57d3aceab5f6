import io
import json

import numpy as np
import torch
from safetensors.torch import load
from torch import nn

import hookviz
from hookviz.capturing.export import npz, safetensors
from hookviz.types import Model
from tests.networks import as_model, random_input


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


def test_safetensors_hold_the_same_and_say_which_model(tiny: Model) -> None:
    cap = hookviz.capture(tiny, random_input(1), ["conv1", "relu"])
    written = safetensors(cap)
    loaded = load(written)
    assert set(loaded) == {"input", "conv1", "relu", "relu#1"}
    for address, part in cap.items():
        assert torch.equal(loaded[address], part.values)
    assert torch.equal(loaded["input"], cap.input)
    header = json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])
    assert header["__metadata__"] == {"model": "Tiny", "weights": "own", "digest": cap.digest}


def test_activations_that_share_memory_are_each_written() -> None:
    model = as_model(nn.Sequential(nn.Identity(), nn.Identity(), nn.Conv2d(3, 2, 1)))
    cap = hookviz.capture(model, random_input(2), ["0", "1"])
    loaded = load(safetensors(cap))
    assert torch.equal(loaded["0"], cap.input[0])
    assert torch.equal(loaded["1"], cap.input[0])
