"""One channel's map as data, against the array that it is of."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from hookviz.drawing.grid import make_grid
from hookviz.explorer.channel_map import MOST_VALUES, channel_map


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


def test_the_bars_ends_are_the_channels_own() -> None:
    maps = np.stack([np.full((2, 2), 9.0), np.array([[-1.0, 2.0], [0.0, 1.0]])]).astype(np.float32)
    facts = channel_map(make_grid(maps, scale="channel"), 1, maps[1])
    ends = dict(facts["ticks"])
    assert float(ends[0.0].replace("−", "-")) == pytest.approx(-1)
    assert float(ends[1.0].replace("−", "-")) == pytest.approx(2)
    assert decoded(facts["bar"]).width > 1


def test_of_a_large_map_only_the_colours_are_sent() -> None:
    side = int(MOST_VALUES**0.5) + 1
    maps = np.zeros((1, side, side), np.float32)
    assert channel_map(make_grid(maps), 0, maps[0])["values"] is None
    small = maps[:, : side - 1, : side - 1]
    assert channel_map(make_grid(small), 0, small[0])["values"] is not None
