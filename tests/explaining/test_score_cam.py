import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.score_cam import score_cam
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone


def test_the_weights_are_the_softmax_over_the_channels_that_are_tried(
    tiny: Model, noise: Tensor
) -> None:
    activation = np.zeros((3, 2, 2), np.float32)
    activation[0, 0, 0], activation[1, 0], activation[2, 1, 1] = 0.1, 5.0, 3.0
    shares: list[float] = []
    signed, weights = score_cam(
        tiny, prepare(tiny, noise), activation, target=1, top=2, progress=shares.append
    )
    large = nn.UpsamplingBilinear2d((noise.shape[2], noise.shape[3]))
    masks = [large(torch.from_numpy(channel)[None, None]) for channel in activation[1:]]
    scores = [tiny.network(noise * mask / mask.max())[0, 1] for mask in masks]
    expected = torch.stack(scores).softmax(0).tolist()
    assert weights.tolist() == pytest.approx([0, *expected], rel=1e-4)
    np.testing.assert_allclose(signed, np.einsum("c,chw->hw", weights, activation))
    assert shares == sorted(shares)
    assert shares[-1] == 1


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
