"""Arrays as JSON carries them, and one channel's map, against their own bytes and values."""

import base64
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hookviz.drawing.grid import make_grid
from hookviz.explorer.encoding import (
    MOST_VALUES,
    channel_map,
    float32_text,
    largest,
    robust_largest,
    rows_of_numbers,
)


@given(st.lists(st.floats(width=32), max_size=9))
def test_float32_values_arrive_to_the_bit(values: list[float]) -> None:
    array = np.array(values, np.float32)
    assert base64.b64decode(float32_text(array)) == array.tobytes()
    turned = np.arange(6, dtype=np.float64).reshape(2, 3).T
    assert base64.b64decode(float32_text(turned)) == np.array([0, 3, 1, 4, 2, 5], "<f4").tobytes()


def test_the_largest_leaves_out_what_is_not_finite() -> None:
    rows = rows_of_numbers(np.array([[np.nan, np.inf, 123456.0], [-1e-9, 0.0, 2 / 3]]))
    assert json.loads(json.dumps(rows, allow_nan=False)) == [
        *([None, None, 123460.0], [-1e-9, 0.0, 0.66667]),
    ]
    values = np.array([1.0, -7.0, np.nan, np.inf])
    assert largest(values) == 7
    assert largest(np.array([np.nan])) == robust_largest(np.array([np.nan])) == 0
    one_of_200 = np.r_[np.ones(199), 50.0]
    assert robust_largest(one_of_200) == 1
    assert robust_largest(np.r_[np.zeros(199), 50.0]) == 50  # not 0, which spans nothing


def test_only_a_map_of_few_cells_has_its_values() -> None:
    side = int(MOST_VALUES**0.5) + 1
    for maps in (np.zeros((1, side, side), np.float32), np.zeros((1, side - 1, side), np.float32)):
        facts = channel_map(make_grid(maps), 0, maps[0])
        assert (facts["values"] is None) == (maps[0].size > MOST_VALUES)
