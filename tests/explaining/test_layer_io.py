import pytest
import torch
from torch import Tensor

from hookviz.capturing.inputs import prepare
from hookviz.explaining.layer_io import layer_io
from hookviz.types import Model


def test_an_in_place_layer_shows_what_it_wrote_over(tiny: Model, noise: Tensor) -> None:
    conv = tiny.network.get_submodule("conv1")
    call = layer_io(tiny, prepare(tiny, noise), "relu")
    ((path, layer_input),), ((_, output),) = call.inputs, call.outputs
    assert path == ("0",)
    assert torch.equal(layer_input, conv(noise))
    assert torch.equal(output, conv(noise).relu())
    assert call.others == ()
    relu = tiny.network.get_submodule("relu")
    assert call.in_place is bool(getattr(relu, "inplace", False))


def test_a_later_call_is_another_one(tiny: Model, noise: Tensor) -> None:
    shares: list[float] = []
    call = layer_io(tiny, prepare(tiny, noise), "relu", 1, shares.append)
    assert call.outputs[0][1].shape == (1, 6, 7, 7)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8])  # the head does not run
