import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.lessons.layers import (
    PLACES,
    activation_of,
    capture_at,
    channel_of,
    check_channel,
    correlation,
    layer_of,
    maps_of,
    receptive_field_of,
    strongest_first,
)
from hookviz.lessons.part import LessonScene
from tests.lessons.conftest import scene_of
from tests.networks import Tiny, as_model, seeded
from tests.ui.lessons.parts.scenes import cat, star


def test_a_position_is_a_conv_layer_in_order_of_execution_with_its_field(
    scene: LessonScene,
) -> None:
    names = [layer.name for layer in scene.trace.convs]
    places = [names.index(layer_of(scene, place).name) for place in PLACES]
    assert places == sorted(places)
    assert (places[0], places[1], places[-1]) == (0, 1, len(names) - 1)
    assert layer_of(scene, "stage1.second.conv").name == "stage1.second.conv"
    assert layer_of(scene, "stage1").name == "stage1"
    field = receptive_field_of(cat(), "features.0")
    assert field is not None
    assert field.size == (3, 3)
    assert receptive_field_of(cat(), "features.99") is None


def test_few_layers_stand_for_several_positions_and_others_are_refused() -> None:
    two = scene_of(as_model(seeded(Tiny)))
    assert {layer_of(two, place).name for place in PLACES} == {"conv1", "conv2"}
    assert layer_of(two, "second").name == layer_of(two, "last").name == "conv2"
    with pytest.raises(UnknownLayerError, match="Did you mean 'conv2', 'conv1'"):
        layer_of(scene_of(as_model(seeded(Tiny))), "conv")
    flat = as_model(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 2)))
    with pytest.raises(HookVizError, match="has no conv layer"):
        layer_of(scene_of(flat), "first")


def test_a_place_is_no_conv_of_one_cell_where_there_are_others() -> None:
    """Squeeze and excitation has convs whose maps are one cell, which show nothing of a place."""
    scene = scene_of(hookviz.load_model("mobilenet_v3_small", "random"))
    assert any(conv.output_shape[1:] == (1, 1) for conv in scene.trace.convs)
    for place in PLACES:
        assert layer_of(scene, place).output_shape[1] > 1
    alone = as_model(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 2, 1), nn.Flatten()))
    assert layer_of(scene_of(alone), "early").name == "1"


def test_the_activation_is_the_relu_that_runs_next() -> None:
    assert activation_of(star(), layer_of(star(), "first")) == "stem.relu"
    assert activation_of(cat(), layer_of(cat(), "first")) == "features.1"
    shortcut = layer_of(star(), "stage3.shortcut.conv")
    found = activation_of(star(), shortcut)
    assert found in ("stage3.shortcut.conv", "stage3.relu_out")
    maps = capture_at(star().model, star().model_input, found)
    assert maps.values.shape == shortcut.output_shape
    maps = capture_at(star().model, star().model_input, "stem.relu")
    whole = hookviz.capture(star().model, star().model_input, "stem.relu")
    assert (maps.values == whole["stem.relu"].values).all()
    assert maps.values.min() == 0


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
