"""A card: its pictures can be read back from it, and all its words stand within it."""

import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing.picture_card import Face, picture_card
from hookviz.language.speaking import speaking
from hookviz.types import Pixels
from tests.pictures import picture

WORDS = "A long sentence about what is to be seen above. " * 4


def faces(height: int, width: int) -> list[Face]:
    made = [np.array(picture(seed, width, height)) for seed in (1, 2, 3)]
    return [Face(each, f"title {place}", "words") for place, each in enumerate(made)]


def opened(png: bytes) -> Pixels:
    with Image.open(io.BytesIO(png)) as file:
        return np.asarray(file.convert("RGB"))


@pytest.mark.parametrize(("height", "width"), [(224, 224), (64, 64), (128, 200), (400, 300)])
def test_each_pixel_of_a_picture_is_a_square_of_whole_pixels(height: int, width: int) -> None:
    given = faces(height, width)
    card = picture_card("A heading", given, WORDS, "HookViz")
    sheet = opened(card.png)
    times = card.magnification
    assert times * max(height, width) >= 336
    for face, (left, top, right, bottom) in zip(given, card.boxes, strict=True):
        assert (bottom - top, right - left) == (times * height, times * width)
        shown = sheet[top:bottom, left:right]
        assert np.array_equal(shown, face.picture.repeat(times, 0).repeat(times, 1))


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_words_of_any_length_stay_within_its_edges(language: str) -> None:
    heading = "从埃及猫到烤面包机" * 6 if language == "zh_CN" else "From a cat to a toaster " * 6
    with speaking(language):
        short = opened(picture_card("A", faces(64, 64), "B", "C").png)
        long = opened(picture_card(heading, faces(64, 64), WORDS, "C").png)
    assert long.shape[0] > short.shape[0]
    assert long.shape[1] == short.shape[1]
    for edge in (long[:8], long[-8:], long[:, :8], long[:, -8:]):
        assert (edge == 255).all()
    assert (long[48:100] < 128).any()  # the heading is there


def test_the_same_card_is_the_same_file() -> None:
    made = [picture_card("A", faces(64, 64), WORDS, "C").png for _ in range(2)]
    assert made[0] == made[1]
