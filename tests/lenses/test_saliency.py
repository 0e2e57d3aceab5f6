import math
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import ImagePanel
from tests.codegen.script_cases import SHAPESNET, SQUEEZENET, ScriptCase
from tests.lenses.said import texts
from tests.networks import as_model, random_input, seeded
from tests.pictures import picture

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"method": "input × gradient", "target": 1}, SHAPESNET),
    ScriptCase({"beside_random": True}, SHAPESNET),
    ScriptCase({"method": "SmoothGrad", "samples": 3, "noise": 0.2}, SQUEEZENET),
    ScriptCase({"method": "guided backpropagation"}),
    ScriptCase({"layer": "features.3.expand1x1", "channel": 5}, SQUEEZENET),
    ScriptCase({"layer": "stage1.first.conv", "channel": 7, "method": "SmoothGrad"}, SHAPESNET),
)
NOT_IN_SCRIPT = ("random_map", "rank_correlation")  # of other weights


METHODS = ("gradient", "input × gradient", "SmoothGrad", "guided backpropagation")


def images_of(result: hookviz.LensResult) -> list[ImagePanel]:
    return [panel for panel in result.panels if isinstance(panel, ImagePanel)]


def linear() -> nn.Sequential:
    """Scores that are sums of the input's values times fixed numbers."""
    return nn.Sequential(nn.Conv2d(3, 2, 8), nn.Flatten())


def test_of_a_linear_network_every_method_gives_the_weights() -> None:
    network: Any = seeded(linear)
    image = random_input(1, 8)
    weights = network[0].weight[1].detach()
    for method in METHODS:
        result = hookviz.run_lens("saliency", as_model(network), image, method=method, target=1)
        expected = weights * image[0] if method == "input × gradient" else weights
        np.testing.assert_allclose(result.values["attribution"], expected, rtol=1e-4, atol=1e-7)
    result = hookviz.run_lens("saliency", as_model(network), image, method="input × gradient")
    score, bias = float(result.values["value"]), network[0].bias
    top = int(network(image).argmax())
    assert result.values["map"].sum() == pytest.approx(score - float(bias[top].detach()), abs=1e-5)


class Step(nn.Module):
    """The sum of the rectified input: its gradient is 1 above zero and 0 below."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.relu(images).sum((2, 3))
        return scores


def test_smoothgrad_is_the_mean_over_noise_of_the_stated_size() -> None:
    image = torch.full((1, 1, 16, 16), 0.5)
    image[0, 0, 0, 0] = 2.5  # the input's range is then 2, and the noise 0.25 × 2
    result = hookviz.run_lens(
        "saliency",
        as_model(Step()),
        image,
        method="SmoothGrad",
        target=0,
        samples=50,
        noise=0.25,
    )
    # P(0.5 + 0.5 z > 0) = Φ(1), with a standard error of 0.0033 over 255 pixels × 50 copies
    mean = result.values["map"].flatten()[1:].mean()
    assert mean == pytest.approx(0.5 * (1 + math.erf(1 / math.sqrt(2))), abs=0.012)
    still = hookviz.run_lens(
        "saliency", as_model(Step()), image, method="SmoothGrad", target=0, samples=2, noise=0.0
    )
    np.testing.assert_array_equal(still.values["map"], np.ones((16, 16)))


def test_noise_leaves_torchs_own_generator_alone(tiny: hookviz.Model) -> None:
    before = torch.get_rng_state()
    hookviz.run_lens("saliency", tiny, picture(), method="SmoothGrad", samples=2)
    assert torch.equal(before, torch.get_rng_state())


def test_guided_backpropagation_says_where_it_cuts(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("saliency", tiny, picture(), method="guided backpropagation")
    assert "cut at 2 ReLUs" in texts(result)
    plain = hookviz.run_lens(
        "saliency", as_model(seeded(linear)), random_input(0, 8), method="guided backpropagation"
    )
    assert "No ReLU lies between" in texts(plain)
    assert "plain gradient" in texts(plain)


def test_one_pixel_is_shown_where_it_is_in_an_image_that_is_not_square() -> None:
    class Corner(nn.Module):
        """One score: a pixel near the upper right corner of its 16×16 input."""

        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Identity()

        def forward(self, images: Tensor) -> Tensor:
            score: Tensor = self.same(images)[:, :1, 2, 12]
            return score

    result = hookviz.run_lens("saliency", as_model(Corner()), Image.new("RGB", (80, 40)))
    assert np.argwhere(result.values["map"]).tolist() == [[2, 12]]
    on_image, alone = (panel.picture.astype(int) for panel in images_of(result))
    rows, columns = np.nonzero(on_image.sum(2) > 300)
    # the crop is the middle 40×40 of 80×40, shown 8 times as large: 20 pixels to each of 16
    assert (rows.min(), rows.max()) == (40, 59)
    assert (columns.min(), columns.max()) == (160 + 12 * 20, 160 + 13 * 20 - 1)
    rows, columns = np.nonzero(alone.sum(2) > 300)
    assert (rows.min(), rows.max()) == (40, 59)  # in the same place


def test_grey_inputs_and_networks_without_convolutions() -> None:
    head = nn.Linear(64, 3)
    image = random_input(0, 8)[:, :1]
    model = as_model(nn.Sequential(nn.Flatten(), head))
    result = hookviz.run_lens("saliency", model, image, target=2)
    expected = head.weight[2].detach().abs().view(8, 8)
    np.testing.assert_allclose(result.values["map"], expected, rtol=1e-6)
