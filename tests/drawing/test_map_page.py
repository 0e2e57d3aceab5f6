"""A map on paper: how large it is, how many pictures a card holds, what is cut off."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import AxesImage
from matplotlib.text import Text

from hookviz.drawing.map_page import Card, Line, MapDrawing, fitting, map_figure

TILE = np.zeros((4, 4, 3), np.uint8)
DRAWING = MapDrawing(
    cards=(Card("layer-a", "a", 0.5, 0.0, 1.0, 2.2, 1, (TILE, TILE, TILE)),),
    lines=(Line("line--1-0", ((0.0, 1.1), (0.5, 1.1)), 1),),
    size=(2.0, 2.2),
    photograph=None,
    classes=(),
    begins=(0.0, 1.1),
    ends=(2.0, 1.1),
    legend="What is shown.",
)


def said(drawing: MapDrawing) -> list[str]:
    return [each.get_text() for each in map_figure(drawing).findobj(Text) if each.get_text()]


def test_a_card_has_as_many_pictures_as_there_is_room_for_and_a_map_40_inches() -> None:
    for height, count in ((1.0, 1), (2.2, 2), (3.0, 3), (6.0, 3)):
        card = replace(DRAWING.cards[0], height=height)
        images = map_figure(replace(DRAWING, cards=(card,))).findobj(AxesImage)
        assert len(images) == count
        tops = [each.get_extent()[3] for each in images]
        ends = [each.get_extent()[2] for each in images]
        assert tops[0] >= 0
        assert ends[-1] <= height
        assert all(end <= top for end, top in zip(ends, tops[1:], strict=False))
    figure = map_figure(replace(DRAWING, size=(1000.0, 2.2), ends=(1000.0, 1.1)))
    assert max(figure.get_size_inches()) == pytest.approx(40)
    assert map_figure(DRAWING).get_size_inches()[0] < 4


def test_names_are_cut_off_and_classes_stand_with_their_shares() -> None:
    card = replace(DRAWING.cards[0], name="a_very_long_name_of_a_layer")
    classes = (("cat", 0.75, "75 %"), ("dog", 0.25, "25 %"))
    drawing = replace(DRAWING, cards=(card,), photograph=TILE, classes=classes)
    assert {"cat 75 %", "dog 25 %", "What is shown."} <= set(said(drawing))
    (name,) = (each for each in said(drawing) if each.startswith("a_very"))
    assert name.endswith("…")
    assert fitting("relu", 1.0, 0.15) == "relu"
    assert len(map_figure(drawing).findobj(AxesImage)) == 3  # two in the card
