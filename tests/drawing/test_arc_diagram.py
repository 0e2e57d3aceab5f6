import numpy as np

from hookviz.drawing.arc_diagram import arc_diagram

ORANGE, TEAL = (0xC2, 0x60, 0x3C), (0x1F, 0x9A, 0x9D)


def has(picture: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], colour: tuple[int, ...]) -> bool:
    return bool((np.abs(picture.astype(int) - colour).max(2) < 12).any())


def test_a_way_past_others_is_an_arc_and_a_meeting_is_orange() -> None:
    names = ["image", "conv1", "conv2", "conv3"]
    plain = arc_diagram(names, [(0, 1), (1, 2), (2, 3)])
    assert plain.dtype == np.uint8
    assert plain.ndim == 3
    assert not has(plain, TEAL)
    assert not has(plain, ORANGE)
    joined = arc_diagram(names, [(0, 1), (1, 2), (2, 3), (1, 3)], {3})
    assert has(joined, TEAL)
    assert has(joined, ORANGE)
    assert joined.shape[0] > plain.shape[0]  # the arc takes room above


def test_many_names_still_fit_a_page() -> None:
    many = arc_diagram([f"layer{index}" for index in range(500)], [(0, 1)])
    assert many.shape[1] < 2500


def test_one_thing_alone_is_a_dot() -> None:
    assert arc_diagram(["image"], []).size
