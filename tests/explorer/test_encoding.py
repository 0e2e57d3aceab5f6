"""Arrays as JSON carries them, and one channel's map, against their own bytes and values."""

import base64
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

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


def decoded(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_values_and_picture_are_of_that_channel() -> None:
    maps = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)
    maps[1, 2, 3] = np.nan
    facts = channel_map(make_grid(maps, scale="channel"), 1, maps[1])
    assert (facts["rows"], facts["columns"]) == (4, 5)
    read = np.frombuffer(base64.b64decode(facts["values"]), "<f4").reshape(4, 5)
    np.testing.assert_array_equal(read, maps[1])
    picture = np.asarray(decoded(facts["picture"]).convert("RGB"))
    assert picture.shape == (4, 5, 3)
    assert picture[2, 3].tolist() == [255, 0, 255]  # NaN is magenta
    assert "channel 1" in facts["says"]
    ends = [float(dict(facts["ticks"])[at].replace("−", "-")) for at in (0.0, 1.0)]
    assert ends == pytest.approx([np.nanmin(maps[1]), np.nanmax(maps[1])], rel=1e-2)
    assert decoded(facts["bar"]).width > 1
    side = int(MOST_VALUES**0.5) + 1
    large = np.zeros((1, side, side), np.float32)
    assert channel_map(make_grid(large), 0, large[0])["values"] is None
    small = large[:, : side - 1, : side - 1]
    assert channel_map(make_grid(small), 0, small[0])["values"] is not None
