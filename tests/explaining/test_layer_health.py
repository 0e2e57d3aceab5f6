import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.layer_health import network_health
from hookviz.types import Model
from tests.networks import Tiny, all_hooks, as_model, seeded


def test_every_output_is_looked_at_before_it_is_overwritten(tiny: Model, noise: Tensor) -> None:
    health = network_health(tiny, prepare(tiny, noise), "conv1")
    assert [str(output.address) for output in health.outputs] == [
        *("conv1", "relu", "conv2", "relu#1", "head")
    ]
    conv = tiny.network.get_submodule("conv1")
    np.testing.assert_array_equal(health.values["conv1"], conv(noise).detach().flatten().numpy())
    assert health.first_bad is None
    assert health.limit == pytest.approx(1e4 * max(1.0, float(noise.abs().max())))


def test_the_first_bad_output_is_kept_beside_the_one_asked_for(noise: Tensor) -> None:
    network = seeded(Tiny)
    network.conv2.weight.detach()[0, 0, 0, 0] = torch.inf
    health = network_health(as_model(network), prepare(as_model(network), noise), "head")
    assert health.first_bad is not None
    assert health.first_bad.address.layer == "conv2"
    assert health.first_bad.bad_parameters == ("weight",)
    assert not health.first_bad.input_bad
    assert list(health.values) == ["conv2", "head"]


def test_dead_and_saturated_units_are_counted(noise: Tensor) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid())

    network = seeded(build)
    conv = network.get_submodule("0")
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    conv.weight.detach()[1:] = 0  # three channels with one value everywhere
    conv.bias.detach()[:] = torch.tensor([0.0, 9.0, -9.0, 0.0])
    model = as_model(network)
    first, second = network_health(model, prepare(model, noise), "0").outputs
    assert (first.units, first.dead) == (second.units, second.dead) == (4, 3)
    assert np.isnan(first.saturated)
    assert second.saturated >= 0.5


def test_progress_goes_call_by_call_and_can_end_it(tiny: Model, noise: Tensor) -> None:
    told: list[float] = []
    network_health(tiny, prepare(tiny, noise), "head", told.append)
    assert told == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])

    def stop(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        network_health(tiny, prepare(tiny, noise), "head", stop)
    assert all_hooks(tiny) == 0
