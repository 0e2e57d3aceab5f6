"""Maps of attention laid out by cells, and the sheet that is printed of them."""

import numpy as np

from hookviz.drawing.attention_panel import (
    CLASS_TOKEN,
    attention_sheet,
    head_maps,
    query_name,
)

GRID = (2, 3)
WEIGHTS = np.arange(2 * 2 * 3 * 4, dtype=np.float32).reshape(2, 2, 3, 4)  # two windows, two heads
QUERIES = np.array([[0, 1, 2], [3, 4, -1]])
KEYS = np.array([[-1, 2, 1, 0], [5, 4, 3, -1]])


def test_a_query_has_its_keys_where_their_cells_are() -> None:
    maps = head_maps(WEIGHTS, QUERIES, KEYS, GRID, 4)
    nan = np.nan
    for head in range(2):
        first, second, third, _ = WEIGHTS[1, head, 1]
        np.testing.assert_array_equal(maps[head], [[nan, nan, nan], [third, second, first]])
    maps = head_maps(WEIGHTS, QUERIES, KEYS, GRID, CLASS_TOKEN)
    np.testing.assert_array_equal(maps[0, 0], WEIGHTS[0, 0, 0, [3, 2, 1]])
    assert np.isnan(head_maps(WEIGHTS, QUERIES, KEYS, GRID, 5)).all()
    assert query_name(4, GRID) == "the patch at row 1, column 1"
    assert query_name(CLASS_TOKEN, GRID) == "the class token"


def test_a_sheet_shows_the_strongest_the_asking_and_the_keyless_patch() -> None:
    photograph = np.full((20, 30, 3), 200, np.uint8)
    values = np.array([[0.0, 1.0, np.nan], [0.0, 0.0, 0.0]])
    sheet = attention_sheet(photograph, [values, values], 3)
    assert sheet.shape == (112, 2 * 168 + 6, 3)
    strongest, weakest, keyless = (sheet[28, x].mean() for x in (84, 28, 140))
    assert keyless < weakest < strongest
    assert (sheet[57, 2] == 255).all()  # the frame around the fourth patch
    assert (sheet[:, 168:174] == 255).all()
