import numpy as np

from hookviz.drawing import heat


def test_a_resized_map_is_linear_between_the_middles_of_its_cells() -> None:
    smooth = heat.resized(np.array([[0.0, 4.0], [8.0, 12.0]]), 4, 8)
    across = [0.0, 0.0, 0.5, 1.5, 2.5, 3.5, 4.0, 4.0]
    down = [0.0, 2.0, 6.0, 8.0]
    np.testing.assert_allclose(smooth, np.add.outer(down, across))


def test_the_end_colour_stands_for_a_percentile_of_what_is_finite() -> None:
    values = np.arange(-100.0, 1.0).reshape(1, -1)
    assert heat.color_limit(values) == 100
    assert heat.color_limit(values, 99) == 99
    assert heat.color_limit(np.array([[np.nan, np.inf, -3.0]])) == 3
    assert heat.color_limit(np.eye(20), 50) == 1  # most are 0
    assert heat.color_limit(np.zeros((2, 2))) == 1
    assert heat.color_limit(np.full((2, 2), np.nan)) == 1
