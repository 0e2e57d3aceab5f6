"""What parts look at, held against NumPy."""

import numpy as np
import pytest

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons.maps import (
    channel_of,
    check_channel,
    correlation,
    maps_of,
    strongest_first,
)
from tests.ui.lessons.parts.scenes import star


def test_maps_are_what_the_layer_puts_out() -> None:
    scene = star()
    name = scene.trace.convs[2].name
    captured = hookviz.capture(scene.model, scene.model_input, name)[name].values.numpy()
    np.testing.assert_array_equal(maps_of(scene, name), captured)
    with pytest.raises(HookVizError, match="head"):
        maps_of(star(), "head")


def test_channels_come_by_their_highest_value() -> None:
    maps = np.zeros((3, 2, 2), np.float32)
    maps[:, 1, 0] = -4, 9, 1
    maps[0, 0, 0] = 5
    assert strongest_first(maps) == [1, 0, 2]
    assert strongest_first(maps, 2) == [1, 0]
    assert channel_of(maps, "strongest") == 1
    assert channel_of(maps, "2") == 2
    assert channel_of(maps, "77") == 2  # a smaller layer than the lesson's own


@pytest.mark.parametrize("value", ["-1", "1.5", "strongst", "٣", ""])
def test_what_is_no_channel_is_told(value: str) -> None:
    assert "strongest" in check_channel(value)
    assert check_channel("strongest") == check_channel("31") == ""


def test_correlation_is_numpys() -> None:
    one, other = np.random.default_rng(3).normal(size=(2, 9, 7)).astype(np.float32)
    expected = np.corrcoef(one.ravel(), other.ravel())[0, 1]
    assert correlation(one, other) == pytest.approx(expected, abs=1e-6)
    assert correlation(one, -one) == pytest.approx(-1)
    assert correlation(one, np.full_like(one, 0.1)) == pytest.approx(0, abs=1e-3)
