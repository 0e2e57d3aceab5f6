import numpy as np

from hookviz.drawing.any_grid import grid_of_any


def test_sound_is_strips_and_of_a_volume_the_slice_with_the_largest_value_is_drawn() -> None:
    assert grid_of_any(np.ones((2, 7))).shape == (2, 1, 7)
    volume = np.zeros((2, 3, 4, 5))
    volume[1, 2, 0, 0] = -9
    assert grid_of_any(volume).depth == 2
    assert grid_of_any(volume[:, 0]).depth is None
