import numpy as np
import pytest

from hookviz.drawing.maps_page import maps_figure


@pytest.mark.parametrize(("count", "tiles"), [(1, 1), (6, 6), (7, 12)])
def test_maps_stand_row_by_row_beside_one_colour_bar(count: int, tiles: int) -> None:
    maps = {f"image {n}": np.full((2, 3), n, np.float32) for n in range(count)}
    figure = maps_figure(maps, colormap="viridis", limits=(0, 6), title="Channel 3 of conv")
    *axes, bar = figure.axes
    assert len(axes) == tiles
    assert [each.get_title() for each in axes][:count] == list(maps)
    assert bar.get_ylim() == (0, 6)
    assert figure.get_suptitle() == "Channel 3 of conv"


def test_equal_values_have_equal_colours_in_maps_of_different_sizes() -> None:
    maps = {"a": np.array([[0, 4]], np.float32), "b": np.array([[4], [8], [0]], np.float32)}
    figure = maps_figure(maps, colormap="viridis", limits=(0, 8), title="")
    first, second = (np.asarray(axes.images[0].get_array()) for axes in figure.axes[:2])
    assert first.shape == (1, 2, 3)
    assert second.shape == (3, 1, 3)
    assert (first[0, 1] == second[0, 0]).all()
    assert (first[0, 0] == second[2, 0]).all()
    assert (first[0, 0] != first[0, 1]).any()
