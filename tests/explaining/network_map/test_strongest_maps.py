"""The strongest channels of every layer, against the captures themselves."""

import torch
import torch.nn.functional as F
from torch import Tensor

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.network_map.strongest_maps import on_one_scale, strongest_maps
from hookviz.types import ActivationKey, Model


def test_every_layer_has_its_strongest(tiny: Model, noise: Tensor) -> None:
    found = strongest_maps(tiny, prepare(tiny, noise), count=2, size=(4, 6))
    cap = hookviz.capture(tiny, noise, ["conv1", "relu", "conv2"])
    assert {str(at) for at in found} == {"conv1", "relu", "conv2", "relu#1"}
    for address, strongest in found.items():
        values = cap[str(address)].values
        assert strongest.shape == tuple(values.shape)
        highest = values.flatten(1).amax(1)
        assert list(strongest.channels) == highest.argsort(descending=True)[:2].tolist()
        expected = F.adaptive_avg_pool2d(values[list(strongest.channels)], (4, 6))
        assert torch.allclose(strongest.small, expected)


def test_one_scale_has_the_greatest_distance_from_zero_as_one() -> None:
    small = torch.tensor([[[-4.0, 1.0]], [[2.0, 0.0]]])
    assert on_one_scale(small).min() == -1
    assert not on_one_scale(torch.zeros(1, 2, 2)).any()


def test_maps_are_ranked_by_what_is_asked_and_few_cells_keep_their_values(
    tiny: Model, noise: Tensor
) -> None:
    found = strongest_maps(
        *(tiny, prepare(tiny, noise)),
        count=2,
        size=(64, 64),
        rank=lambda _at, maps: -maps.flatten(1).amax(1),
    )
    values = hookviz.capture(tiny, noise, "conv1")["conv1"].values
    weakest = found[ActivationKey("conv1")]
    assert list(weakest.channels) == values.flatten(1).amax(1).argsort()[:2].tolist()
    assert set(weakest.small[0].flatten().tolist()) == set(
        values[weakest.channels[0]].flatten().tolist()
    )
