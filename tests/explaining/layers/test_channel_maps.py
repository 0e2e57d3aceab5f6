import numpy as np
import torch

import hookviz
from hookviz.explaining.layers.channel_maps import (
    ChannelMaps,
    RegionSelectivity,
    highest_cell,
    inside_and_outside,
)
from tests.networks import Tiny, as_model


def maps_of(*values: np.ndarray) -> ChannelMaps:
    given = hookviz.prepare_input(as_model(Tiny()), torch.zeros(1, 3, 16, 16))
    names = tuple(f"{number}.png" for number in range(len(values)))
    arrays = tuple(each.astype(np.float32) for each in values)
    return ChannelMaps(
        "conv", 3, names, arrays, (given,) * len(values), ("",) * len(values), left_out={}
    )


def test_limits_are_of_all_maps_and_symmetric_where_one_is_negative() -> None:
    rising = np.arange(6.0).reshape(2, 3)
    assert maps_of(rising + 1, 2 * rising).limits == (0.0, 10.0)
    assert maps_of(rising + 1).colormap.name == "viridis"
    signed = maps_of(rising, -2 * rising)
    assert signed.limits == (-10.0, 10.0)
    assert signed.colormap.name == "RdBu_r"


def test_only_finite_values_count() -> None:
    values = np.array([[np.nan, 2.0], [np.inf, 1.0]])
    maps = maps_of(values, np.full((3, 1), np.nan))
    np.testing.assert_array_equal(maps.highest, [2, np.nan])
    np.testing.assert_array_equal(maps.mean, [1.5, np.nan])
    assert highest_cell(values.astype(np.float32)) == (0, 1)
    assert maps.limits == (0.0, 2.0)
    assert not maps.has_one_size
    assert maps_of(values, values).has_one_size


def test_a_channel_without_finite_values_has_no_rank() -> None:
    maps = np.zeros((4, 2, 2), np.float32)
    maps[0, :, 0] = 1  # more inside
    maps[1] = np.nan
    maps[3, :, 1] = 1  # more outside
    weights = np.array([[1.0, 0.0], [1.0, 0.0]])
    result = RegionSelectivity("conv", maps, weights, *inside_and_outside(maps, weights))
    np.testing.assert_array_equal(result.score, [2, np.nan, 0, -2])
    assert result.ranking.tolist() == [0, 2, 3]


def test_its_grid_has_the_channels_in_the_order_of_their_scores() -> None:
    maps = np.random.default_rng(0).random((5, 4, 4), np.float32) - 0.5
    weights = np.zeros((4, 4))
    weights[:2] = 1
    result = RegionSelectivity("conv", maps, weights, *inside_and_outside(maps, weights))
    grid = result.grid(result.ranking[:3].tolist())
    assert list(grid.order) == result.ranking[:3].tolist()
    assert grid.limits.low[0] == -grid.limits.high[0] == -np.abs(maps).max()
    assert result.figure(top=2).axes
