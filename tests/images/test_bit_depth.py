"""Greys of more than 8 bits in a window, and pages of a stack, by plain NumPy."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.images.bit_depth import in_window, window_of
from hookviz.images.choices import MOST_PAGES, page_count
from tests.images.test_reading import grey, png

Array = NDArray[Any]
SCAN = np.random.default_rng(1).integers(900, 1100, (60, 80)).astype(np.uint16)


def stretched(values: Array, low: float, high: float) -> Array:
    return grey(np.rint((values.astype(float) - low).clip(0, high - low) / (high - low) * 255))


def encoded(kind: str, *pages: Array, **options: Any) -> bytes:
    images = [Image.fromarray(page) for page in pages]
    buffer = BytesIO()
    more = {"save_all": True, "append_images": images[1:]} if images[1:] else {}
    images[0].save(buffer, kind, **more, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_a_deep_grey_keeps_its_levels_and_says_its_window(
    kind: str, tiny: hookviz.Model, tmp_path: Path
) -> None:
    (tmp_path / "scan").write_bytes(encoded(kind, SCAN))
    image = hookviz.read_image(tmp_path / "scan")
    assert hookviz.capture(tiny, tmp_path / "scan").note == image.note
    assert hookviz.capture(tiny, [tmp_path / "scan"])[0].note == image.note
    assert hookviz.capture(tiny, "assets/samples/cat.jpg").note == ""
    low, high = np.percentile(SCAN, (0.5, 99.5))
    np.testing.assert_array_equal(image.pixels, stretched(SCAN, low, high))
    assert len(np.unique(image.pixels)) > 190  # of 200
    assert f"level {(low + high) / 2:g} and width {high - low:g}" in image.note
    assert "window=(level, width)" in image.note
    chosen = hookviz.read_image(encoded(kind, SCAN), window=(1000, 50))
    np.testing.assert_array_equal(chosen.pixels, stretched(SCAN, 975, 1025))
    assert chosen.note == ""
    mask = np.zeros((60, 80), np.uint16)  # from its least to its greatest value
    mask[0, 0] = 7
    assert window_of(mask) == (3.5, 7.0)
    assert window_of(np.full((4, 4), 9)) == (9.5, 1.0)
    assert hookviz.read_image(mask).pixels[0, :2, 0].tolist() == [255, 0]
    for given in (
        "assets/samples/cat.jpg",
        np.zeros((60, 80, 3), np.uint8),
        Image.new("L", (9, 9)),
    ):
        with pytest.raises(hookviz.ImageError, match="no grey of more than 8 bits"):
            hookviz.read_image(given, window=(40, 400))


def test_values_that_are_no_numbers_do_not_count() -> None:
    values = np.array([[np.nan, -np.inf, np.inf, 1.0, 3.0]])
    low, high = np.percentile([1.0, 3.0], (0.5, 99.5))
    level, width = window_of(values)
    assert (level - width / 2, level + width / 2) == pytest.approx((low, high))
    assert in_window(values, (2.0, 2.0)).tolist() == [[0, 0, 255, 0, 255]]
    values = np.array([[-3e38, 0.0, 3e38]], np.float32)
    assert in_window(values, window_of(values))[0, 1] in (127, 128)
    assert in_window(values, (0.0, 5e-324)).tolist() == [[0, 0, 255]]


def test_transparent_greys_do_not_count() -> None:
    deep = np.dstack([SCAN, np.full_like(SCAN, 65535)])
    deep[0, 0] = (60000, 0)
    data = png([row.astype(">u2").tobytes() for row in deep], 80, 16, 4)
    image = hookviz.read_image(data, background=(0, 0, 0))
    low, high = np.percentile(SCAN.ravel()[1:], (0.5, 99.5))
    expected = stretched(SCAN, low, high)
    expected[0, 0] = 0
    np.testing.assert_array_equal(image.pixels, expected)
    assert "window" in image.note


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        *(({"window": window}, "is no window") for window in ((1, 0), (1,), "a", 3, (1, np.inf))),
        *(({"page": page}, "is no page") for page in (0, -1, 1.5, True)),
        *(({"bands": bands}, "not three bands") for bands in ((1, 2), (0, 1, 2), "rgb", 3)),
        ({"page": 2}, "has no page 2, but one alone"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(hookviz.ImageError, match=said):
        hookviz.read_image(encoded("PNG", SCAN), **choice)


def test_a_page_of_a_stack_is_chosen() -> None:
    pages = [SCAN, SCAN[::-1].copy(), SCAN[:50] // 2]
    data = encoded("TIFF", *pages, compression="tiff_deflate")
    for number, page in enumerate(pages, 1):
        image = hookviz.read_image(data, page=number)
        np.testing.assert_array_equal(
            image.pixels, stretched(page, *np.percentile(page, (0.5, 99.5)))
        )
        assert f"Page {number} of 3; read_image(path, page=…)" in image.note
    assert hookviz.read_image(data).digest == hookviz.read_image(data, page=1).digest
    with pytest.raises(hookviz.ImageError, match="no page 4: it has 3, counted from 1"):
        hookviz.read_image(data, page=4)
    tifffile = pytest.importorskip("tifffile")
    colours = np.random.default_rng(2).integers(0, 65536, (3, 20, 30, 3)).astype(np.uint16)
    buffer = BytesIO()
    tifffile.imwrite(buffer, colours, photometric="rgb")
    image = hookviz.read_image(buffer.getvalue(), page=2)
    np.testing.assert_array_equal(image.pixels, np.rint(colours[1] / 257))


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", "<>")
def test_pages_are_counted_as_tifffile_counts_them(big: bool, order: Any) -> None:
    tifffile = pytest.importorskip("tifffile")
    buffer = BytesIO()
    with tifffile.TiffWriter(buffer, bigtiff=big, byteorder=order) as writer:
        for _ in range(5):
            writer.write(SCAN, contiguous=False)
    assert page_count(buffer.getvalue()) == 5
    assert page_count(buffer.getvalue()[:-40]) <= 5


def test_pages_without_end_are_counted_in_no_time() -> None:
    loop = b"II*\0\x08\0\0\0" + b"\0\0\x08\0\0\0" + b"\0" * 8
    assert page_count(loop) == 1
    chain = b"".join(b"\0\0" + (14 + 6 * n).to_bytes(4, "little") for n in range(300_000))
    assert page_count(b"II*\0\x08\0\0\0" + chain) == MOST_PAGES
    assert page_count(b"II*\0\xff\xff\xff\xff" + b"\0" * 8) == 1
