import numpy as np

from hookviz.drawing.enlarging import enlarged


def test_small_pictures_grow_and_large_ones_stay() -> None:
    small = np.zeros((64, 128, 3), np.uint8)
    small[:, 64:] = 255
    grown = enlarged(small)
    assert grown.shape == (192, 384, 3)
    assert not grown[:, :180].any()
    assert (grown[:, 204:] == 255).all()
    large = np.zeros((500, 20, 3), np.uint8)
    assert enlarged(large) is large
