"""The ReLU behind a conv layer, and what comes of it."""

import hookviz
from hookviz.lessons.activations import activation_of, captured
from hookviz.lessons.layers import layer_of
from tests.lessons.parts.scenes import cat, star


def test_it_is_the_relu_that_runs_next() -> None:
    assert activation_of(star(), layer_of(star(), "first")) == "stem.relu"
    assert activation_of(cat(), layer_of(cat(), "first")) == "features.1"


def test_without_one_it_is_the_layer_itself() -> None:
    shortcut = layer_of(star(), "stage3.shortcut.conv")
    found = activation_of(star(), shortcut)
    assert found in ("stage3.shortcut.conv", "stage3.relu_out")
    maps = captured(star().model, star().model_input, found)
    assert maps.values.shape == shortcut.output_shape


def test_what_is_captured_is_the_activation() -> None:
    maps = captured(star().model, star().model_input, "stem.relu")
    whole = hookviz.capture(star().model, star().model_input, "stem.relu")
    assert (maps.values == whole["stem.relu"].values).all()
    assert maps.values.min() == 0
