import numpy as np
import pytest
import torch

from hookviz.capturing.inputs import prepare
from hookviz.explaining.score_cam import score_cam
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone


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
