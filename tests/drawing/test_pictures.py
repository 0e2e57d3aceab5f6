"""Encoding loses little, sizes are rows and columns, and a card holds its pictures and words."""

import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing.pictures import (
    Face,
    Resampling,
    encode_jpeg,
    encode_png,
    enlarged,
    fit_size,
    kernel_picture,
    middle_square,
    patch_sheet,
    picture_card,
    resize,
    small_png,
    thumbnail,
)
from hookviz.language.speaking import speaking
from hookviz.types import Pixels
from tests.pictures import picture

PICTURE = np.random.default_rng(7).integers(0, 256, (6, 10, 3)).astype(np.uint8)

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("bands", [3, 4])
def test_a_png_has_the_same_pixels(bands: int) -> None:
    picture = np.dstack([PICTURE, PICTURE[..., :1]])[..., :bands]
    for level in (1, 6):
        image = Image.open(io.BytesIO(encode_png(picture, compress_level=level)))
        assert image.format == "PNG"
        np.testing.assert_array_equal(np.asarray(image), picture)


def test_a_jpeg_looks_alike_and_better_at_a_higher_quality() -> None:
    flat = np.full((16, 16, 3), (200, 30, 90), np.uint8)
    image = Image.open(io.BytesIO(encode_jpeg(flat, quality=90)))
    assert image.format == "JPEG"
    assert np.abs(np.asarray(image).astype(int) - flat).max() <= 3
    assert len(encode_jpeg(PICTURE, quality=90)) > len(encode_jpeg(PICTURE, quality=20))


def test_a_size_is_rows_and_columns_and_proportions_stay() -> None:
    assert resize(PICTURE, (3, 20)).shape == (3, 20, 3)
    doubled = resize(PICTURE, (12, 20), Resampling.NEAREST)
    np.testing.assert_array_equal(doubled, PICTURE.repeat(2, 0).repeat(2, 1))
    assert fit_size(PICTURE, 5) == (3, 5)
    assert fit_size(PICTURE, 1) == (1, 1)
    wide = np.zeros((100, 400, 3), np.uint8)
    for rows, height in ((100, 19), (1, 1)):  # a line of pixels is there still
        with Image.open(io.BytesIO(small_png(wide[:rows], 76))) as small:
            assert small.size == (76, height)
    values = np.arange(48, dtype=np.float32).reshape(6, 8)
    expected = values.reshape(3, 2, 4, 2).mean((1, 3))
    np.testing.assert_allclose(resize(values, (3, 4), Resampling.BOX), expected, rtol=1e-6)


def test_zero_is_middle_grey_in_a_kernels_picture() -> None:
    kernel = np.array([-2, 0, 1, 2], np.float32).repeat(3).reshape(4, 3).T.reshape(3, 2, 2)
    picture = kernel_picture(kernel)
    assert picture[..., 0].tolist() == [[0, 128], [191, 255]]
    assert (picture == picture[..., :1]).all()
    assert (kernel_picture(np.zeros((3, 1, 1), np.float32)) == 128).all()


def test_a_thumbnail_is_the_middle_square() -> None:
    np.testing.assert_array_equal(middle_square(PICTURE, 6), PICTURE[:, 2:8])
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = (10, 20, 30)
    small = thumbnail(wide, 5)
    assert small.shape == (5, 5, 3)
    assert (small[2, 2] == (10, 20, 30)).all()


def test_small_pictures_grow_and_large_ones_stay() -> None:
    small = np.zeros((64, 128, 3), np.uint8)
    small[:, 64:] = 255
    grown = enlarged(small)
    assert grown.shape == (192, 384, 3)
    assert not grown[:, :180].any()
    assert (grown[:, 204:] == 255).all()
    large = np.zeros((500, 20, 3), np.uint8)
    assert enlarged(large) is large


@pytest.mark.parametrize("count", [1, 5, 64])
def test_each_patch_lies_where_the_geometry_says(count: int) -> None:
    patches = [RNG.integers(0, 256, (12, 12, 3), np.uint8) for _ in range(count)]
    sheet = patch_sheet(patches, 12)
    pixels = np.asarray(Image.open(io.BytesIO(sheet.png)))
    for place, patch in enumerate(patches):
        left, top, right, bottom = sheet.geometry.box(place)
        assert np.array_equal(pixels[top:bottom, left:right, :3], patch)
        assert (pixels[top:bottom, left:right, 3] == 255).all()
    assert pixels.shape == (sheet.geometry.height, sheet.geometry.width, 4)


def test_one_that_is_not_there_is_clear_and_any_other_shape_is_cut_square() -> None:
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200  # its middle square
    sheet = patch_sheet([None, wide], 20)
    pixels = np.asarray(Image.open(io.BytesIO(sheet.png)))
    for place, (red, clear) in enumerate(((0, 0), (200, 255))):
        left, top, right, bottom = sheet.geometry.box(place)
        middle = pixels[(top + bottom) // 2, left + 5 : right - 5]  # its edges are blended
        assert (middle[:, 0] == red).all()
        assert (middle[:, 3] == clear).all()


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
