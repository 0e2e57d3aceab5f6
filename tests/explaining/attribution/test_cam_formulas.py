"""The formulas by hand; the lens grad-cam's tests hold them against captum and pytorch-grad-cam."""

import numpy as np
import pytest
import torch

from hookviz.capturing.inputs import prepare
from hookviz.explaining.attribution.cam_formulas import (
    eigen_cam,
    grad_cam,
    grad_cam_plus_plus,
    layer_cam,
    score_cam,
)
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone

ACTIVATION = np.array([[[1.0, 2.0]], [[3.0, -1.0]]])
GRADIENT = np.array([[[0.5, 1.5]], [[-2.0, 0.0]]])


def test_each_formula_gives_what_it_gives_by_hand() -> None:
    signed, weights = grad_cam(ACTIVATION, GRADIENT)
    assert weights.tolist() == [1.0, -1.0]
    assert signed.tolist() == [[1 - 3, 2 + 1]]
    signed, weights = grad_cam_plus_plus(ACTIVATION, GRADIENT)
    shares = [g**2 / (2 * g**2 + 3.0 * g**3) for g in (0.5, 1.5)]
    assert weights == pytest.approx([0.5 * shares[0] + 1.5 * shares[1], 0.0], rel=1e-5)
    assert signed == pytest.approx(np.einsum("c,chw->hw", weights, ACTIVATION))
    assert layer_cam(ACTIVATION, GRADIENT).tolist() == [[0.5, 3.0]]
    cells = np.array([[[0.0, 3.0, 0.0]], [[0.0, 4.0, 0.0]]])  # one cell stands out along (3, 4)
    signed, direction = eigen_cam(cells)
    assert direction == pytest.approx([0.6, 0.8])
    assert signed[0] == pytest.approx([-5 / 3, 10 / 3, -5 / 3])


@pytest.mark.parametrize("kind", ODD)
def test_every_masked_image_is_asked_about_on_a_fresh_network(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    activation = network.conv1(image)[0].detach().numpy()
    model = as_model(network)
    _, weights = score_cam(model, prepare(model, image), activation, target=2, top=6)
    low = activation.min((1, 2), keepdims=True)
    masks = (activation - low) / (activation.max((1, 2), keepdims=True) - low)
    expected = alone(network, torch.from_numpy(masks)[:, None] * image)[:, 2].softmax(0)
    np.testing.assert_allclose(weights, expected.detach(), rtol=1e-5)
