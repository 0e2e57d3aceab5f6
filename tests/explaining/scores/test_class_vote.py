"""Votes of channels are those of the network itself, and of no other kind of network."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.scores.class_vote import class_vote
from hookviz.types import Model
from tests.networks import Tiny, as_model, random_input, seeded


class Ending(Tiny):
    """Two convolutions, and then an ending in code of its own."""

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.conv1(images)).relu()
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class Largest(Ending):
    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.conv2(self.conv1(images)).relu().amax((2, 3)))
        return scores


class Squashed(Ending):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images).tanh()


def test_parts_and_bias_sum_to_the_score_of_every_class(tiny: Model) -> None:
    model_input = prepare(tiny, random_input(1))
    vote: Any = class_vote(tiny, model_input)
    network: Any = tiny.network
    with torch.no_grad():
        scores = network(model_input.tensor)[0].numpy()
    weights = network.head.weight.detach().numpy().astype(np.float64)
    for target in range(5):
        parts = vote.contributions(target).numpy()
        whole = parts.sum() + network.head.bias.detach().numpy()[target]
        assert whole == pytest.approx(scores[target], abs=1e-5)
        means = vote.maps.numpy().astype(np.float64).mean((1, 2))
        np.testing.assert_allclose(parts, weights[target] * means, atol=1e-6)


def test_of_a_bundled_network_with_modules_for_all_of_it() -> None:
    model = hookviz.load_model("shapesnet")
    model_input = prepare(model, "assets/samples/star.jpg")
    vote: Any = class_vote(model, model_input)
    assert (vote.layer, vote.head, vote.rectified) == ("stage3", "head", False)
    maps = hookviz.capture(model, model_input, "stage3")["stage3"].values.numpy()
    np.testing.assert_array_equal(vote.maps.numpy(), maps)


def test_a_relu_without_a_module_is_found_out() -> None:
    model = as_model(seeded(Ending))
    vote: Any = class_vote(model, prepare(model, random_input(1)))
    assert vote.rectified
    assert vote.layer == "conv2"
    assert (vote.maps >= 0).all()


def test_another_ending_a_head_that_is_a_convolution_and_no_scores_are_no_vote() -> None:
    for network in (seeded(Largest), seeded(Squashed), nn.Sequential(nn.Conv2d(3, 4, 3))):
        model = as_model(network)
        assert class_vote(model, prepare(model, random_input(1))) is None
    model = hookviz.load_model("squeezenet")
    assert class_vote(model, prepare(model, "assets/samples/cat.jpg")) is None
