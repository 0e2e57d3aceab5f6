"""Class scores with channels off, against a copy of the network whose weights are 0 there."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from hookviz.lessons.layers import layer_of
from hookviz.lessons.scores import (
    Scores,
    by_effect,
    chance,
    effects,
    own_scores,
    ratio,
    scores_of,
    scores_without,
    scores_without_each,
)
from tests.networks import all_hooks
from tests.ui.lessons.parts.scenes import star


def by_hand(layer: str, channels: list[int]) -> np.ndarray:
    """The scores of a copy in which the channels' kernels are 0; ShapesNet's have no bias."""
    network = copy.deepcopy(star().model.network)
    conv = network.get_submodule(layer)
    assert isinstance(conv, nn.Conv2d)
    conv.weight.data[channels] = 0
    with torch.no_grad():
        scores: np.ndarray = network(star().model_input.tensor)[0].double().numpy()
    return scores


@pytest.mark.parametrize("channels", [[], [0], [1, 5, 30]])
def test_channels_that_are_off_are_0_at_the_layer(channels: list[int]) -> None:
    scene = star()
    found = scores_without(scene, layer_of(scene, "first"), channels)
    np.testing.assert_allclose(found.scores, by_hand("stem.first.conv", channels), atol=1e-4)
    assert all_hooks(scene.model) == 0


def test_effects_are_the_falls_of_the_likeliest_class() -> None:
    scene = star()
    layer = layer_of(scene, "late")
    fallen, each = effects(scene, layer), scores_without_each(scene, layer)
    before = own_scores(scene)
    assert before.name(before.best) == "star"
    assert each.shape == (layer.output_shape[0], len(before.scores))
    for channel in (0, 17, 63):
        alone = by_hand(layer.name, [channel])
        np.testing.assert_allclose(each[channel], alone, atol=1e-4)
        assert fallen[channel] == pytest.approx(before.scores[before.best] - alone[3], abs=1e-4)


def test_channels_come_by_effect_and_chances_are_the_softmax() -> None:
    fallen = np.array([0.5, -2.0, 3.0, 0.0])
    assert by_effect(fallen, "most") == [2, 0, 3, 1]
    assert by_effect(fallen, "least") == [3, 0, 1, 2]
    scores = Scores(np.array([1.0, 900.0, 899.0]), ("a",))
    np.testing.assert_allclose(scores.chances, [0, 1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    assert [scores.name(target) for target in scores.first(2)] == ["class 1", "class 2"]
    own = scores_of(star().model, star().model_input)
    np.testing.assert_allclose(own.scores, by_hand("stem.first.conv", []), atol=1e-4)


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (1.0, "100.0 %"),
        (0.99999, "> 99.9 %"),
        (0.9867, "98.7 %"),
        (0.25, "25.0 %"),
        (0.0344, "3.4 %"),
        (0.00999, "1.0 %"),
        (0.00144, "0.14 %"),
        (0.0000206, "0.0021 %"),
        (0.00000123, "0.00012 %"),
        (1e-9, "< 0.0001 %"),
        (0.0, "< 0.0001 %"),
    ],
)
def test_small_probabilities_keep_two_digits(share: float, written: str) -> None:
    assert chance(share) == written


def test_a_ratio_is_told_as_far_as_the_shown_numbers_bear_it_out() -> None:
    assert ratio(0.9867, 0.001437) == "700"  # not 686.6: what is shown makes 705
    assert ratio(0.6, 0.3) == "2.00"
    assert ratio(0.3, 0.3) == "1.00"
    assert ratio(0.9, 1e-9) == ""
    assert ratio(0.99999, 0.00001) == ""


def test_who_divides_the_shown_numbers_gets_the_ratio_that_is_told() -> None:
    draw = np.random.default_rng(8)
    told = 0
    for _ in range(500):
        smaller, larger = sorted(draw.uniform(0, 1, 2) ** 3)
        said = ratio(larger, smaller)
        if not said:
            continue
        told += 1
        shown = [float(chance(each).split()[0]) for each in (larger, smaller)]
        digits = len(said.replace(",", "").replace(".", "").strip("0") or "0")
        value = float(said.replace(",", ""))
        assert shown[0] / shown[1] == pytest.approx(value, rel=0.5 / 10 ** (digits - 1))
        assert larger / smaller == pytest.approx(value, rel=0.5 / 10 ** (digits - 1))
    assert told > 300
