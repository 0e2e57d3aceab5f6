import numpy as np

from hookviz.drawing.framing import outlined


def test_a_frame_stands_around_its_pixels_and_leaves_them_as_they_are() -> None:
    picture = np.random.default_rng(0).integers(10, 250, (20, 30, 3), dtype=np.uint8)
    shown = outlined(picture, (5, 10, 8, 14), side=300)
    assert shown.shape == (200, 300, 3)
    np.testing.assert_array_equal(shown[50:80:10, 100:140:10], picture[5:8, 10:14])
    np.testing.assert_array_equal(shown[49, 100:140], np.tile([0x1F, 0x9A, 0x9D], (40, 1)))
    np.testing.assert_array_equal(shown[50:80, 140], np.tile([0x1F, 0x9A, 0x9D], (30, 1)))
    np.testing.assert_array_equal(shown[0, 0], (picture[0, 0] * 0.45).astype(np.uint8))


def test_the_frame_of_a_whole_picture_lies_on_its_border() -> None:
    picture = np.full((10, 10, 3), 200, dtype=np.uint8)
    shown = outlined(picture, (0, 0, 10, 10), side=100)
    assert (shown[0] == (0x1F, 0x9A, 0x9D)).all()
    assert (shown[5:95, 5:95] == 200).all()


def test_a_field_that_sees_nothing_of_the_picture_shows_nothing_bright() -> None:
    picture = np.full((10, 10, 3), 200, dtype=np.uint8)
    shown = outlined(picture, (0, 0, 0, 4), side=100)
    assert (shown[20:] == 90).all()
