import numpy as np

from hookviz.drawing.framing import framed, on_input, on_picture
from hookviz.types import Crop, InputImage


def test_a_frame_is_white_inside_black_and_touches_nothing_else() -> None:
    picture = np.full((40, 60, 3), 128, np.uint8)
    shown = framed(picture, (10, 20, 20, 40))
    assert (shown[10:20, 20:40] == 128).all()
    assert (shown[8, 20:40] == 255).all()
    assert (shown[6, 20:40] == 0).all()
    assert (picture == 128).all()
    assert (shown[:6] == 128).all()
    assert (shown[24:] == 128).all()


def test_a_frame_at_the_edge_is_cut() -> None:
    shown = framed(np.zeros((20, 20, 3), np.uint8), (0, 0, 20, 20))
    assert shown.shape == (20, 20, 3)


def test_a_rectangle_of_the_input_lands_where_it_lies_on_the_image() -> None:
    image = InputImage(np.zeros((100, 200, 3), np.uint8), "wide.png", "")
    crop = Crop(left=50, top=0, right=150, bottom=100, height=10, width=10)
    assert on_picture((0, 0, 10, 10), crop, image, (50, 100)) == (0, 25, 50, 75)
    assert on_picture((5, 5, 6, 7), crop, image, (100, 200)) == (50, 100, 60, 120)


def test_a_rectangle_of_the_input_is_framed_where_it_lies_on_a_picture_of_all_of_it() -> None:
    picture = np.full((100, 200, 3), 128, np.uint8)
    expected = framed(picture, (50, 100, 70, 160))
    assert (on_input(picture, (5, 5, 7, 8), (10, 10)) == expected).all()
