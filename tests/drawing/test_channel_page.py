import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing import channel_page as page
from hookviz.drawing.grid import Grid, make_grid
from hookviz.errors import HookVizError, SettingError
from hookviz.types import Crop


@pytest.fixture
def values() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(3).normal(size=(4, 6, 5)).astype(np.float32)


@pytest.fixture
def grid(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Grid:
    return make_grid(values, title="conv1")


def test_the_numbers_are_those_of_the_map() -> None:
    flat = np.array([[1.0, -2.0, 0.0, 4.0, np.nan]], dtype=np.float32)
    said = page.numbers(make_grid(np.stack([flat, flat * 2])), 0, flat)
    assert said == {
        "minimum": "−2.00",
        "mean": "0.750",
        "maximum": "4.00",
        "standard deviation": "2.17",
        "zeros": "25 %",
        "rank by maximum": "2 of 2",
    }
    nothing = np.full((2, 2), np.nan, dtype=np.float32)
    assert page.numbers(make_grid(nothing[None]), 0, nothing) == {"finite values": "none"}


def test_csv_reads_back_to_the_bit() -> None:
    values = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32) ** 9
    values[0, :3] = np.inf, -np.inf, np.nan
    read = np.loadtxt(io.StringIO(page.channel_csv(values)), delimiter=",", dtype="float32")
    np.testing.assert_array_equal(read, values)


def test_a_page_has_the_map_the_image_and_the_histogram(
    grid: Grid, values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    image = np.full((40, 60, 3), (200, 30, 30), dtype=np.uint8)
    crop = Crop(10, 0, 50, 40, 16, 16)
    made = page.channel_page(grid, 2, values[2], image=image, crop=crop)
    with Image.open(io.BytesIO(made)) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(10**7) or ()}
    with Image.open(io.BytesIO(grid.channel_png(2, 1))) as shown:
        map_colours = {colour for _, colour in shown.convert("RGB").getcolors() or ()}
    assert map_colours <= colours  # every cell's own colour, unblurred
    assert (0x1F, 0x9A, 0x9D) in colours
    assert (200, 30, 30) in colours


def test_without_an_image_the_map_stands_alone_and_others_are_refused(
    grid: Grid, values: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    with Image.open(io.BytesIO(page.channel_page(grid, 0, values[0]))) as alone:
        assert alone.width == round(7.2 * 200)
    with pytest.raises(HookVizError, match="Channel 9 is not in this grid"):
        page.channel_page(grid, 9, values[0])
    with pytest.raises(SettingError, match="no map of"):
        page.channel_page(grid, 0, values[0, :2])
    with pytest.raises(SettingError, match="gif"):
        page.channel_page(grid, 0, values[0], format="gif")
