import numpy as np

from hookviz.explaining.receptive_fields.effective_field import strongest, weights_of_pixels


def test_the_fewest_pixels_that_hold_the_mass() -> None:
    weights = np.array([[1.0, 5.0], [3.0, 1.0]])
    assert strongest(weights, 0.5).tolist() == [[False, True], [False, False]]
    assert strongest(weights, 0.51).tolist() == [[False, True], [True, False]]
    assert strongest(weights, 0.85).tolist() == [[True, True], [True, False]]  # of equals the first
    assert strongest(weights, 1.0).all()
    assert not strongest(np.zeros((2, 3))).any()
    weights = np.random.default_rng(0).random((7, 9)) ** 4
    chosen = strongest(weights, 0.95)
    smallest = np.sort(weights[chosen])
    assert smallest.sum() >= 0.95 * weights.sum()
    assert smallest[1:].sum() < 0.95 * weights.sum()
    assert smallest[0] >= weights[~chosen].max()


def test_a_pixel_weighs_what_its_channels_weigh() -> None:
    gradient = np.array([[[1.0, -2.0]], [[-3.0, 0.5]]], np.float32)
    assert weights_of_pixels(gradient).tolist() == [[4.0, 2.5]]
