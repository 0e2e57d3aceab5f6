import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.weight_gradients import (
    clip_factor,
    nearest_strength,
    verdicts_of,
    weight_gradients,
)
from hookviz.types import Model
from tests.networks import Tiny, as_model, random_input, seeded


def test_they_are_what_backward_leaves_on_a_copy(noise: Tensor) -> None:
    network = seeded(Tiny)
    gradients = weight_gradients(as_model(network), prepare(as_model(network), noise), 2)
    other = seeded(Tiny).requires_grad_()
    loss = F.cross_entropy(other(noise), torch.tensor([2]))
    loss.backward()  # type: ignore[no-untyped-call]
    assert gradients.loss == pytest.approx(loss.item(), rel=1e-5)
    assert list(gradients.by_layer) == ["conv1", "conv2", "head"]
    for index, (name, gradient) in enumerate(gradients.by_layer.items()):
        weight = other.get_parameter(f"{name}.weight")
        assert weight.grad is not None
        torch.testing.assert_close(gradient, weight.grad)
        assert gradients.norms[index] == pytest.approx(float(weight.grad.norm()), rel=1e-5)
        share = float(weight.grad.norm() / weight.detach().norm())
        assert gradients.strengths[index] == pytest.approx(share, rel=1e-5)
    total = torch.nn.utils.clip_grad_norm_(other.parameters(), 0.05)
    assert gradients.total_norm == pytest.approx(float(total), rel=1e-5)
    clipped = gradients.clipped("by norm", 0.05)
    torch.testing.assert_close(clipped[0], other.get_parameter("conv1.weight").grad)
    assert gradients.clipped("by value", 1e-3)[0].abs().max() <= 1e-3


def test_nothing_is_left_on_the_model(tiny: Model, noise: Tensor) -> None:
    weight_gradients(tiny, prepare(tiny, noise), 0)
    assert all(parameter.grad is None for parameter in tiny.network.parameters())


def test_a_network_without_scores_is_told() -> None:
    model = as_model(seeded(lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))))
    with pytest.raises(hookviz.ModelError, match="puts out no class scores"):
        weight_gradients(model, prepare(model, random_input(0)), 0)


def test_clipping_by_norm_only_makes_smaller() -> None:
    assert clip_factor(0.5, 1.0) == 1.0
    assert clip_factor(4.0, 1.0) == pytest.approx(0.25, rel=1e-5)


def test_layers_are_held_against_the_one_nearest_to_the_loss() -> None:
    norms = np.array([1e-9, 1.0, np.nan, 1e6, 1.0, 0.0])
    strengths = np.array([1e-9, 0.1, np.nan, 1e6, 0.1, 0.0])
    assert nearest_strength(norms, strengths) == 0.1
    said = ["vanishing", "", "exploding", "exploding", "", "vanishing"]
    assert verdicts_of(norms, strengths) == said
    assert np.isnan(nearest_strength(norms[-1:], strengths[-1:]))
