import io
import json
from collections import OrderedDict

import numpy as np
import torch
from safetensors.torch import load
from torch import nn

import hookviz
from hookviz.capturing.export import npz, safetensors
from hookviz.types import Model
from tests.networks import as_model, random_input


def test_an_npz_and_safetensors_hold_every_activation_and_the_input(tiny: Model) -> None:
    cap = hookviz.capture(tiny, random_input(1), ["conv1", "relu"])
    written = safetensors(cap)
    with np.load(io.BytesIO(npz(cap)), allow_pickle=False) as loaded:
        files = [dict(loaded), {name: each.numpy() for name, each in load(written).items()}]
    for found in files:
        assert set(found) == {"input", "conv1", "relu", "relu#1"}
        for address, part in cap.items():
            np.testing.assert_array_equal(found[address], part.values.numpy())
        np.testing.assert_array_equal(found["input"], cap.input.numpy())
    header = json.loads(written[8 : 8 + int.from_bytes(written[:8], "little")])
    assert header["__metadata__"] == {"model": "Tiny", "weights": "own", "digest": cap.digest}
    model = as_model(nn.Sequential(OrderedDict(file=nn.Conv2d(3, 2, 1))))  # any name will do
    with np.load(io.BytesIO(npz(hookviz.capture(model, torch.zeros(1, 3, 4, 4))))) as loaded:
        assert loaded["file"].shape == (2, 4, 4)
    alike = as_model(nn.Sequential(nn.Identity(), nn.Identity(), nn.Conv2d(3, 2, 1)))
    cap = hookviz.capture(alike, random_input(2), ["0", "1"])
    same = load(safetensors(cap))  # which share memory, and are each written
    assert all(torch.equal(same[name], cap.input[0]) for name in "01")
