"""Ask lenses about a later call of a layer, by the address that a capture gives it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hookviz
from hookviz.errors import SettingError
from hookviz.explaining.attribution.methods import eigen_cam
from tests.networks import as_model, random_input, seeded

IMAGE = random_input(0)


class Pyramid(nn.Module):
    """One head over maps of three sizes, as detectors have it; the scores are of all three."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 5, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, images: Tensor, see: Callable[[Tensor], object] = id) -> Tensor:
        maps, scores = self.stem(images), []
        for level in range(3):
            heads = self.head(F.avg_pool2d(maps, 2**level))
            see(heads)
            scores.append((level + 1) * self.relu(heads.clone()).square().mean((2, 3)))
        return torch.stack(scores).sum(0)


@pytest.fixture(scope="module")
def network() -> Pyramid:
    return seeded(Pyramid)


@pytest.fixture(scope="module")
def model(network: Pyramid) -> hookviz.Model:
    return as_model(network)


@pytest.mark.parametrize("call", [0, 1, 2])
def test_lenses_look_at_the_call_that_a_capture_calls_so(
    network: Pyramid, model: hookviz.Model, call: int
) -> None:
    layer = f"head#{call}" if call else "head"

    def values(lens: str, **chosen: Any) -> dict[str, Any]:
        return dict(hookviz.run_lens(lens, model, IMAGE, layer=layer, **chosen).values)

    heads: list[Tensor] = []
    image = IMAGE.clone().requires_grad_()
    score = network(image, heads.append)[0, 1]
    mean = heads[call][0, 2].mean()
    (gradient,) = torch.autograd.grad(score, heads[call], retain_graph=True)
    (pixels,) = torch.autograd.grad(mean, image)
    output, gradient = heads[call].detach()[0], gradient[0]

    found = values("gradients", target=1)["gradient"]
    np.testing.assert_allclose(found, gradient, rtol=1e-4, atol=1e-8)
    weights = gradient.mean((1, 2))
    signed = (weights[:, None, None] * output).sum(0)
    found = values("grad-cam", target=1)["signed"]
    np.testing.assert_allclose(found, signed, rtol=1e-3, atol=1e-7)
    found = values("grad-cam", method="Eigen-CAM")["signed"]
    np.testing.assert_allclose(found, eigen_cam(output.numpy())[0], rtol=1e-3, atol=1e-6)
    assert values("grad-cam", target=1, method="Score-CAM")["signed"].shape == signed.shape
    found = values("saliency", channel=2)["attribution"]
    np.testing.assert_allclose(found, pixels[0], rtol=1e-4, atol=1e-8)
    for lens in ("saliency", "integrated-gradients", "occlusion"):
        assert values(lens, channel=2)["value"] == pytest.approx(mean.item(), rel=1e-5)


def test_a_later_call_sees_more_here(model: hookviz.Model) -> None:
    def height(layer: str) -> int:
        lens = hookviz.run_lens("effective-receptive-field", model, IMAGE, layer=layer)
        top, _, bottom, _ = lens.values["box"]
        return int(bottom - top)

    heights = [height(layer) for layer in ("head", "head#1", "head#2")]
    assert heights == [5, 8, 13], "3 cells of 1, 2 and 4 pixels, and 2 around; the image has 16"


@pytest.mark.parametrize(
    ("lens", "layer", "last"),
    [
        ("grad-cam", "head#3", "head#2"),
        ("saliency", "head#9", "head#2"),
        ("ablate", "head#1", "head"),
    ],
)
def test_another_call_is_refused_with_one_that_works(
    model: hookviz.Model, lens: str, layer: str, last: str
) -> None:
    with pytest.raises(SettingError, match="runs 3 times in a pass") as refused:
        hookviz.run_lens(lens, model, IMAGE, layer=layer)
    assert str(refused.value).endswith(f"is {last!r}.")
    assert hookviz.run_lens(lens, model, IMAGE, layer=last).values
