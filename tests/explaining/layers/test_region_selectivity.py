import numpy as np

from hookviz.explaining.layers.region_selectivity import RegionSelectivity, inside_and_outside


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
