import numpy as np

from hookviz.lessons.part import Scene
from hookviz.lessons.pictures import grey_of, picture_of


def test_grey_is_the_brightness_of_each_pixel(scene: Scene) -> None:
    picture = picture_of(scene)
    whole = grey_of(scene, 1000)
    assert whole.shape == picture.shape[:2]
    red, green, blue = picture[5, 9].astype(float)
    expected = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    np.testing.assert_allclose(whole[5, 9], expected, rtol=1e-5)
    small = grey_of(scene, 64)
    assert small.shape == (64, 64)
    np.testing.assert_allclose(small[0, 0], whole[:2, :2].mean(), atol=1 / 255)
