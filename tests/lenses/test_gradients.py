from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hookviz
from tests.codegen.script_cases import PVT, RESNET, SHAPESNET, ScriptCase
from tests.lenses.said import texts
from tests.networks import Tiny, as_model, seeded
from tests.pictures import picture

SCRIPTS = (
    ScriptCase({"target": 2}),
    ScriptCase({"layer": "stage1.first.conv", "of": "stage2.second.conv", "channel": 3}, SHAPESNET),
    ScriptCase(
        {"layer": "conv1", "of": "layer2.0.conv1", "channel": 1, "row": 2, "column": 3}, RESNET
    ),
    ScriptCase({"layer": "stages.0.blocks.0.norm1", "target": 1}, PVT),
)


def test_its_panels_show_the_numbers(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("gradients", tiny, picture(), target=1, layer="conv1")
    gradient = result.values["gradient"]
    panels: Any = result.panels
    _, about, grid, chart = panels
    assert "the score of class 1" in about.text
    assert grid.grid.limits.scale == "symmetric"
    assert grid.grid.limits.high[0] == pytest.approx(np.abs(gradient).max())
    order = [int(label) for label in chart.labels]
    assert sorted(order) == [0, 1, 2, 3]
    np.testing.assert_allclose(
        chart.series["max |g|"], np.abs(gradient).max((1, 2))[order], rtol=1e-6
    )
    assert (np.diff(chart.series["max |g|"]) <= 0).all()


def test_a_layer_asked_about_itself_is_said_to_be_pointless(
    tiny: hookviz.Model, noise: Tensor
) -> None:
    result = hookviz.run_lens("gradients", tiny, noise, layer="conv2", of="conv2", channel=1)
    expected = np.zeros((6, 7, 7))
    expected[1] = 1 / 49
    np.testing.assert_allclose(result.values["gradient"], expected, rtol=1e-6)
    assert "choose an earlier layer" in texts(result, "note")


def test_a_dead_layer_is_said_to_be_dead(noise: Tensor) -> None:
    network = seeded(Tiny)
    with torch.no_grad():
        assert network.conv2.bias is not None
        network.conv2.bias.fill_(-100)  # nothing gets past the ReLU
    result = hookviz.run_lens("gradients", as_model(network), noise)
    assert not result.values["gradient"].any()
    assert "zero everywhere" in texts(result, "note")
