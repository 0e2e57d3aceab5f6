"""A fooled input: its bound, its whole levels, and one step computed once more by hand."""

import copy

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
    made = prepare(tiny, picture())
    image = made.tensor.clone().requires_grad_()
    network = copy.deepcopy(tiny.network)
    network.get_submodule("relu").inplace = False  # type: ignore[assignment]
    loss = F.cross_entropy(network(image), torch.tensor([2]))
    (gradient,) = torch.autograd.grad(loss, image)
    assert made.picture is not None
    signs = gradient[0].sign().permute(1, 2, 0).numpy()
    expected = (made.picture + signs).clip(0, 255).astype(np.uint8)
    found = adversarial_input(tiny, made, 2, 1)
    assert found.picture is not None
    assert np.array_equal(found.picture, expected)
    assert not np.array_equal(found.picture, made.picture)
    assert found.crop == made.crop


@pytest.mark.parametrize("levels", [0, 1, 4])
def test_no_number_moves_further_and_the_class_gets_less_likely(tiny: Model, levels: int) -> None:
    made = prepare(tiny, picture())
    before = hookviz.capture(tiny, made).logits
    versions = {name: value._version for name, value in tiny.network.named_parameters()}
    assert before is not None
    target = int(before.argmax())
    found = adversarial_input(tiny, made, target, levels)
    assert found.picture is not None
    assert made.picture is not None
    moved = np.abs(found.picture.astype(int) - made.picture)
    assert moved.max() == levels
    after = hookviz.capture(tiny, found).logits
    assert after is not None
    chances = [float(logits.softmax(0)[target]) for logits in (before, after)]
    assert chances[1] < chances[0] or levels == 0
    assert all_hooks(tiny) == 0
    assert all(value.grad is None for value in tiny.network.parameters())
    assert versions == {name: value._version for name, value in tiny.network.named_parameters()}


def test_what_progress_raises_ends_it(tiny: Model) -> None:
    class StopError(Exception):
        pass

    def stop(_share: float) -> None:
        raise StopError

    with pytest.raises(StopError):
        adversarial_input(tiny, prepare(tiny, picture()), 0, 3, stop)
