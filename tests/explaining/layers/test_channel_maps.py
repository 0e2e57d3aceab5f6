import numpy as np
import torch

import hookviz
from hookviz.explaining.layers.channel_maps import ChannelMaps, highest_cell
from tests.networks import Tiny, as_model


def maps_of(*values: np.ndarray) -> ChannelMaps:
    given = hookviz.prepare(as_model(Tiny()), torch.zeros(1, 3, 16, 16))
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


def test_the_figure_names_each_image() -> None:
    figure = maps_of(np.eye(3), np.ones((2, 5))).figure()
    assert [axes.get_title() for axes in figure.axes][:2] == ["0.png", "1.png"]
