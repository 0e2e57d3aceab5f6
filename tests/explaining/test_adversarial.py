"""A fooled input: its bound, its whole levels, and one step computed once more by hand."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.adversarial import adversarial_input
from hookviz.types import Model
from tests.networks import all_hooks
from tests.pictures import picture


def test_a_step_is_the_sign_of_the_gradient_of_the_loss(tiny: Model) -> None:
    model_input = prepare(tiny, picture())
    image = model_input.tensor.clone().requires_grad_()
    network = copy.deepcopy(tiny.network)
    network.get_submodule("relu").inplace = False  # type: ignore[assignment]
    loss = F.cross_entropy(network(image), torch.tensor([2]))
    (gradient,) = torch.autograd.grad(loss, image)
    assert model_input.picture is not None
    signs = gradient[0].sign().permute(1, 2, 0).numpy()
    expected = (model_input.picture + signs).clip(0, 255).astype(np.uint8)
    fooled = adversarial_input(tiny, model_input, 2, 1, steps=1)
    assert fooled.picture is not None
    assert np.array_equal(fooled.picture, expected)
    assert not np.array_equal(fooled.picture, model_input.picture)
    assert fooled.crop == model_input.crop


@pytest.mark.parametrize("levels", [0, 1, 4])
def test_no_number_moves_further_and_the_class_gets_less_likely(tiny: Model, levels: int) -> None:
    model_input = prepare(tiny, picture())
    before = hookviz.capture(tiny, model_input).logits
    versions = {name: value._version for name, value in tiny.network.named_parameters()}
    assert before is not None
    target = int(before.argmax())
    fooled = adversarial_input(tiny, model_input, target, levels)
    assert fooled.picture is not None
    assert model_input.picture is not None
    moved = np.abs(fooled.picture.astype(int) - model_input.picture)
    assert moved.max() == levels
    after: Any = hookviz.capture(tiny, fooled).logits
    chances = [float(logits.softmax(0)[target]) for logits in (before, after)]
    assert chances[1] < chances[0] or levels == 0
    assert all_hooks(tiny) == 0
    assert all(value.grad is None for value in tiny.network.parameters())
    assert versions == {name: value._version for name, value in tiny.network.named_parameters()}


def test_towards_a_class_is_away_from_all_others_and_more_steps_get_further(tiny: Model) -> None:
    model_input = prepare(tiny, picture())

    def chance(changed: hookviz.ModelInput) -> float:
        logits: Any = hookviz.capture(tiny, changed).logits
        return float(logits.softmax(0)[2])

    made = {
        steps: adversarial_input(tiny, model_input, 2, 8, steps=steps, towards=True)
        for steps in (1, 10)
    }
    assert chance(model_input) < chance(made[1]) <= chance(made[10])
    assert chance(adversarial_input(tiny, model_input, 2, 8)) < chance(model_input)
