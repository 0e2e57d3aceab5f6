"""Where a map and a field lie on the image."""

from dataclasses import replace

import numpy as np

from hookviz.lessons.photograph import field_of, photograph
from tests.lessons.parts.scenes import cat


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


def test_the_field_of_a_layer_is_known_by_its_name() -> None:
    field = field_of(cat(), "features.0")
    assert field is not None
    assert field.size == (3, 3)
    assert field_of(cat(), "features.99") is None
