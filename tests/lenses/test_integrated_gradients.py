import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.codegen.script_cases import RESNET, SHAPESNET, ScriptCase
from tests.lenses.said import texts
from tests.networks import as_model
from tests.pictures import picture

SCRIPTS = (  # here a point of the way at a time
    ScriptCase({"steps": 5}, rounding=1e-5),
    ScriptCase({"baseline": "grey", "target": 1, "steps": 4}, SHAPESNET, 1e-5),
    ScriptCase(
        {"layer": "layer2.0.conv1", "channel": 3, "steps": 4, "baseline": "blurred"},
        RESNET,
        1e-5,
    ),
)
NOT_IN_SCRIPT = ("completeness_error",)  # itself a difference of the size of rounding


class Gate(nn.Module):
    """One score: the sum of what is above 0.9, which a few steps are bad at."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        total: Tensor = self.relu(images - 0.9).sum((1, 2, 3))
        return total[:, None]


def test_what_the_pixels_add_up_to_is_said() -> None:
    image = torch.ones(1, 3, 16, 16)
    model = as_model(Gate())
    result = hookviz.run_lens("integrated-gradients", model, image, steps=3)
    # on the way from 0 to 1 the gradient is 1 above 0.9 alone: none of the three points is there
    assert result.values["attribution"].sum() == 0
    assert float(result.values["completeness_error"]) == pytest.approx(1)
    assert "Not complete" in texts(result)
    assert "About 380 steps should bring that below 1 %" in texts(result)
    assert "Every pixel adds 0" in texts(result)
    good = hookviz.run_lens("integrated-gradients", model, image, steps=380)
    assert float(good.values["completeness_error"]) < 0.01
    assert "Complete: together the pixels add" in texts(good)
    assert "It does not show why" in texts(good)


def test_the_map_is_the_sum_over_the_channels_of_the_input(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("integrated-gradients", tiny, picture(), baseline="black")
    values = result.values
    np.testing.assert_allclose(values["map"], values["attribution"].sum(0))
    difference = float(values["value"] - values["start"])
    assert values["map"].sum() == pytest.approx(difference, rel=0.01)
    assert "From black everywhere to this image" in texts(result)


def test_a_network_without_a_difference_says_so() -> None:
    result = hookviz.run_lens("integrated-gradients", as_model(Gate()), torch.zeros(1, 3, 16, 16))
    assert "Every pixel adds 0" in texts(result)
    broken = torch.full((1, 3, 16, 16), float("nan"))
    result = hookviz.run_lens("integrated-gradients", as_model(Gate()), broken)
    assert "nothing adds up" in texts(result)
