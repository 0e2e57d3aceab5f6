"""The sheet's tiles can be read back, and each has its own channel's number above it."""

import io

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.drawing.colormaps import LEVELS
from hookviz.drawing.grid_page import grid_sheet
from hookviz.language.speaking import speaking
from hookviz.types import Pixels

NUMBER_PX = 13  # above a tile


def opened(png: bytes) -> Pixels:
    with Image.open(io.BytesIO(png)) as file:
        return np.asarray(file)


def places(sheet: Pixels, tiles: list[Pixels]) -> list[tuple[int, int]]:
    """Row and column of each tile's upper left corner on the sheet."""
    found = []
    for tile in tiles:
        windows = np.lib.stride_tricks.sliding_window_view(sheet[..., :3], tile.shape)[:, :, 0]
        [place] = np.argwhere((windows == tile).all((2, 3, 4)))
        found.append((int(place[0]), int(place[1])))
    return found


def above(sheet: Pixels, tile: tuple[int, int]) -> NDArray[np.uint8]:
    """What is written above a tile."""
    row, column = tile
    return sheet[row - NUMBER_PX : row, column : column + 16]


def test_each_tile_has_its_own_number_above_it() -> None:
    values = torch.rand(4, 5, 5, generator=torch.Generator().manual_seed(1))
    values[2] += 1  # first where the largest comes first
    numbers: dict[str, list[NDArray[np.uint8]]] = {}
    for sort in ("index", "max"):
        grid = hookviz.make_grid(values, sort=sort, width=70)
        zoom = grid.geometry.magnification
        tiles = [
            grid.channel_pixels(channel).repeat(zoom, 0).repeat(zoom, 1) for channel in range(4)
        ]
        sheet = opened(grid_sheet(grid, "noise"))
        numbers[sort] = [above(sheet, at) for at in places(sheet, tiles)]
    for own, again in zip(*numbers.values(), strict=True):
        assert np.array_equal(own, again)
        assert own.min() < 128  # there is ink
    assert not np.array_equal(numbers["index"][0], numbers["index"][2])


def test_tiles_without_room_are_counted_row_by_row() -> None:
    grid = hookviz.make_grid(torch.rand(2048, 2, 2), width=100)
    sheet = opened(grid_sheet(grid, "many"))
    assert grid.geometry.tile_width * grid.geometry.magnification < 10
    left = sheet[:, 16:30].min(axis=(1, 2)) < 128  # the margin's numbers
    assert left.any()
    assert sheet.shape[1] < 600


@pytest.mark.by_day
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_title_the_bar_and_the_legend_are_on_it(language: str) -> None:
    grid = hookviz.make_grid(torch.rand(3, 6, 6), colormap="magma")
    with speaking(language):
        one, other = (opened(grid_sheet(grid, title)) for title in ("one", "two"))
        long = opened(grid_sheet(grid, "a long name " * 20))
    rows = np.flatnonzero((one != other).any(axis=(1, 2)))
    assert rows.size
    assert rows.max() < 50  # in the heading alone
    assert long.shape[0] > one.shape[0]
    ramp = grid.palette[np.arange(320) * LEVELS // 320, :3]
    places(one, [np.tile(ramp, (12, 1, 1))])  # once
