"""Scores of a batch, votes of channels, and ReLUs switched off, against networks by hand."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import SettingError
from hookviz.explaining.scores.scoring import (
    class_number,
    class_vote,
    scores_in,
    without_relu,
)
from hookviz.types import Model, ModelInput
from tests.networks import Tiny, as_model, random_input, seeded


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (torch.zeros(2, 4, 7, 7), "2×4×7×7"),
        (torch.zeros(2, 4), "2×4"),
        (torch.zeros(1, 4, dtype=torch.int64), "no tensor of floats"),
        ({"scores": "none"}, "no tensor of floats"),
        (None, "no tensor of floats"),
    ],
)
def test_what_is_no_score_per_class_is_named(tiny: Model, output: object, said: str) -> None:
    with pytest.raises(
        hookviz.ModelError, match=f"answers 1 image with {said}, which is no row of scores"
    ):
        scores_in(tiny, output, 1)


NAMES = ("circle", "square", "star")


@pytest.mark.parametrize(("value", "number"), [("star", 2), (1, 1), ("0", 0), (2.0, 2)])
def test_a_class_goes_by_number_or_name(value: object, number: int) -> None:
    assert class_number(value, NAMES, 3, "ours") == number
    with pytest.raises(SettingError, match=r"ours knows no class 'stra'\. Did you mean 'star'\?"):
        class_number("stra", NAMES, 3, "ours")


@pytest.mark.parametrize("value", [3, -1, True, None, "9" * 5000, float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"^target=.* is not a class of ours: 0 to 2\.$"):
        class_number(value, NAMES, 3, "ours")


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
    model_input = prepare_input(tiny, random_input(1))
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
    model_input = prepare_input(model, "assets/samples/star.jpg")
    vote: Any = class_vote(model, model_input)
    assert (vote.layer, vote.head, vote.rectified) == ("stage3", "head", False)
    maps = hookviz.capture(model, model_input, "stage3")["stage3"].values.numpy()
    np.testing.assert_array_equal(vote.maps.numpy(), maps)


def test_a_relu_without_a_module_is_found_out() -> None:
    model = as_model(seeded(Ending))
    vote: Any = class_vote(model, prepare_input(model, random_input(1)))
    assert vote.rectified
    assert vote.layer == "conv2"
    assert (vote.maps >= 0).all()


def test_another_ending_a_head_that_is_a_convolution_and_no_scores_are_no_vote() -> None:
    for network in (seeded(Largest), seeded(Squashed), nn.Sequential(nn.Conv2d(3, 4, 3))):
        model = as_model(network)
        assert class_vote(model, prepare_input(model, random_input(1))) is None
    model = hookviz.load_model("squeezenet")
    assert class_vote(model, prepare_input(model, "assets/samples/cat.jpg")) is None


class Mixed(nn.Module):
    """ReLU as a module, in place, as a function, as a method and as a cut at zero."""

    def __init__(self, *, rectified: bool = True) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.rectified = rectified
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(6))
        self.relu, self.written, self.six = nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6()
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        steps: tuple[Any, ...] = (
            *(self.relu, self.written, F.relu, Tensor.relu, self.six),
            lambda value: value.clamp(min=0),
        )
        for conv, step in zip(self.convs, steps, strict=True):
            x = conv(x)
            x = step(x) if self.rectified else x
        x = x.clamp(-9, 9)  # no ReLU
        scores: Tensor = self.head(torch.sigmoid(x).mean((2, 3)))
        return scores


def wrapped(network: nn.Module) -> tuple[Model, ModelInput]:
    model = hookviz.wrap(network.eval(), example=(torch.zeros(1, 3, 16, 16),))
    return model, hookviz.capture(model, torch.rand(1, 3, 16, 16)).model_input


def test_every_way_to_write_a_relu_is_found() -> None:
    network, plain = Mixed(), Mixed(rectified=False)
    plain.load_state_dict(network.state_dict())
    model, model_input = wrapped(network)
    off = without_relu(model, model_input)
    before = hookviz.capture(model, model_input.tensor).logits
    with torch.no_grad():
        torch.testing.assert_close(off.scores, plain.eval()(model_input.tensor)[0])
        assert not torch.allclose(off.scores, network(model_input.tensor)[0], atol=1e-3)
    assert off.switched_off == {"ReLU": 5, "ReLU6": 1}
    off = without_relu(model, model_input)
    after = hookviz.capture(model, model_input.tensor).logits
    assert before is not None
    assert after is not None
    assert torch.equal(before, after)  # the model itself stays as it was
