"""The image in grey, and where a map and a frame lie on it."""

from dataclasses import replace

import numpy as np

from hookviz.lessons.part import LessonScene
from hookviz.lessons.pictures import grey_of, photograph, picture_of
from tests.lessons.parts.scenes import cat


def test_grey_is_the_brightness_of_each_pixel(scene: LessonScene) -> None:
    picture = picture_of(scene)
    whole = grey_of(scene, 1000)
    assert whole.shape == picture.shape[:2]
    red, green, blue = picture[5, 9].astype(float)
    expected = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    np.testing.assert_allclose(whole[5, 9], expected, rtol=1e-5)
    small = grey_of(scene, 64)
    assert small.shape == (64, 64)
    np.testing.assert_allclose(small[0, 0], whole[:2, :2].mean(), atol=1 / 255)


def test_a_frame_lies_where_the_network_sees() -> None:
    scene = cat()  # whose image is wider than what the network is given of it
    plain = photograph(scene)
    side = scene.model_input.tensor.shape[-1]
    framed = photograph(scene, box=(0, 0, side, side))
    rows, columns = np.nonzero((plain != framed).any(2))
    crop, image = scene.model_input.crop, scene.image
    assert crop is not None
    across = plain.shape[1] / image.width
    assert abs(columns.min() - crop.left * across) <= 5
    assert abs(columns.max() - crop.right * across) <= 5
    down = plain.shape[0] / image.height
    assert abs(rows.min() - crop.top * down) <= 5
    assert abs(rows.max() - crop.bottom * down) <= 5


def test_a_map_covers_what_the_network_sees_and_nothing_else() -> None:
    scene = cat()
    plain = photograph(scene)
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    over = photograph(scene, red, opacity=1)
    crop, image = scene.model_input.crop, scene.image
    assert crop is not None
    left = int(crop.left * plain.shape[1] / image.width)
    np.testing.assert_array_equal(over[:, : left - 1], plain[:, : left - 1])
    middle = over[:, plain.shape[1] // 2]
    covered = (middle == (255, 0, 0)).all(1).mean()
    assert abs(covered - (crop.bottom - crop.top) / image.height) < 0.02


def test_without_a_crop_it_is_what_the_network_got() -> None:
    scene = cat()
    bare = replace(scene, model_input=replace(scene.model_input, crop=None))
    picture = photograph(bare, box=(0, 0, 112, 112))
    assert picture.shape[0] == picture.shape[1]
    assert (
        picture[: picture.shape[0] // 2 - 8, -8:]
        == photograph(bare)[: picture.shape[0] // 2 - 8, -8:]
    ).all()
