"""Arrays as JSON carries them, against their own bytes."""

import base64
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hookviz.explorer.encoding import float32_text, largest, robust_largest, rows_of_numbers


@given(st.lists(st.floats(width=32), max_size=9))
def test_float32_values_arrive_to_the_bit(values: list[float]) -> None:
    array = np.array(values, np.float32)
    assert base64.b64decode(float32_text(array)) == array.tobytes()


def test_a_view_is_written_in_its_own_order() -> None:
    array = np.arange(6, dtype=np.float64).reshape(2, 3).T
    read = np.frombuffer(base64.b64decode(float32_text(array)), "<f4")
    assert read.tolist() == [0, 3, 1, 4, 2, 5]


def test_what_is_not_finite_is_null() -> None:
    rows = rows_of_numbers(np.array([[np.nan, np.inf, 123456.0], [-1e-9, 0.0, 2 / 3]]))
    assert json.loads(json.dumps(rows, allow_nan=False)) == [
        [None, None, 123460.0],
        [-1e-9, 0.0, 0.66667],
    ]


def test_the_largest_leaves_out_what_is_not_finite() -> None:
    values = np.array([1.0, -7.0, np.nan, np.inf])
    assert largest(values) == 7
    assert largest(np.array([np.nan])) == robust_largest(np.array([np.nan])) == 0
    one_of_200 = np.r_[np.ones(199), 50.0]
    assert robust_largest(one_of_200) == 1
    assert robust_largest(np.r_[np.zeros(199), 50.0]) == 50  # not 0, which spans nothing
