"""Measurements as functions: equal to plain passes with hooks, and to what the lenses show."""

import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.errors import SettingError
from hookviz.images.samples import samples

STAR = next(each.path for each in samples() if each.name == "star")
LAYER = "stage2.first.conv"


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_channels_are_ablated_as_a_plain_hook_does_it(shapes: hookviz.Model) -> None:
    given = hookviz.prepare(shapes, STAR)
    effects = hookviz.ablate_channels(shapes, STAR, layer=LAYER, target="star")
    assert effects.layer == LAYER
    layer = shapes.network.get_submodule(LAYER)
    star = shapes.categories.index("star")

    def score_without(channel: int) -> tuple[float, float]:
        def zero(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
            output = output.clone()
            output[:, channel] = 0
            return output

        handle = layer.register_forward_hook(zero)
        try:
            with torch.no_grad():
                scores = shapes.network(given.tensor)[0]
        finally:
            handle.remove()
        return float(scores[star]), float(scores.softmax(0)[star])

    assert effects.probability is not None
    assert effects.probability_changes is not None
    for channel in (0, 5, int(effects.score_changes.argmin())):
        score, probability = score_without(channel)
        assert effects.score + effects.score_changes[channel] == pytest.approx(score, abs=1e-3)
        sum_of_shares = effects.probability + effects.probability_changes[channel]
        assert sum_of_shares == pytest.approx(probability, abs=1e-4)


def test_scores_without_probabilities_have_none() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 5)).eval()
    effects = hookviz.ablate_channels(network, torch.rand(3, 8, 8), target=2)
    assert effects.score_changes.shape == (4,)
    assert (effects.probability, effects.probability_changes) == (None, None)


def test_health_counts_what_is_broken(shapes: hookviz.Model) -> None:
    first = nn.Conv2d(3, 4, 3)
    network = nn.Sequential(first, nn.ReLU(), nn.Conv2d(4, 2, 3)).eval()
    assert first.bias is not None
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.1)
        first.weight[2] = float("nan")
        first.weight[1].zero_()
        first.bias[1] = -1
    health = hookviz.network_health(network, torch.rand(3, 8, 8), layer="1")
    assert health.first_bad is not None
    assert health.first_bad.address.layer == "0"
    assert health.first_bad.nan == 36
    assert [each.dead for each in health.outputs[:2]] == [1, 1]  # channel 1 is −1, and then 0
    assert health.values["1"].size == 4 * 36
    assert hookviz.network_health(shapes, STAR).first_bad is None


def test_gradients_are_those_of_a_plain_training_step(shapes: hookviz.Model) -> None:
    given = hookviz.prepare(shapes, STAR)
    gradients = hookviz.gradient_flow(shapes, STAR, target="circle")
    weight = shapes.network.get_parameter(f"{LAYER}.weight")
    was, weight.requires_grad = weight.requires_grad, True
    try:
        scores = shapes.network(given.tensor.clone())
        loss = nn.functional.cross_entropy(
            scores, torch.tensor([shapes.categories.index("circle")])
        )
        (expected,) = torch.autograd.grad(loss, [weight])
        loss = loss.detach()
    finally:
        weight.requires_grad = was
    assert gradients.loss == pytest.approx(float(loss), rel=1e-5)
    torch.testing.assert_close(gradients.by_layer[LAYER], expected, rtol=1e-3, atol=1e-5)


def test_options_that_a_measurement_has_not_are_refused(shapes: hookviz.Model) -> None:
    with pytest.raises(SettingError, match=r"no option called 'target'.*progress, size, whole"):
        hookviz.network_health(shapes, STAR, target=1)  # type: ignore[call-arg]
    with pytest.raises(hookviz.HookVizError, match="no class"):
        hookviz.gradient_flow(shapes, STAR, target="hexagon of tea")
    assert np.isfinite(hookviz.gradient_flow(shapes, STAR).norms).all()
