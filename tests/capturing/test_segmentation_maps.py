"""Classes as maps, against the network's own output."""

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.types import Preprocess
from tests.networks import Tiny, as_model, random_input, seeded


class Segmenting(nn.Module):
    """Scores for each pixel, as torchvision gives them: by name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"out": self.conv(images), "aux": images}


def test_probabilities_are_the_softmax_of_the_output() -> None:
    network = seeded(Segmenting).eval()
    model = hookviz.wrap(network, Preprocess(16, 16), categories=["sky", "cat", "dog", "tree"])
    image = random_input(0, 16)
    maps = hookviz.segmentation_maps(model, image)
    with torch.no_grad():
        scores = network(image)["out"][0]
    expected = scores.exp() / scores.exp().sum(0)
    assert torch.allclose(maps.probabilities, expected, atol=1e-6)
    assert torch.equal(maps["dog"], maps.probabilities[2])
    assert list(maps) == ["sky", "cat", "dog", "tree"]
    winners = scores.argmax(0)
    shares = dict(maps.shares())
    for number, label in enumerate(maps):
        share = float((winners == number).float().mean())
        assert shares.get(label, 0.0) == pytest.approx(share)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    maps = hookviz.segmentation_maps(as_model(seeded(Segmenting)), image)
    assert list(maps) == ["class 0", "class 1", "class 2", "class 3"]
    with pytest.raises(hookviz.UnknownNameError, match="class 1"):
        maps["class 11"]
    with pytest.raises(hookviz.ModelError, match="such as lraspp_mobilenet_v3_large"):
        hookviz.segmentation_maps(as_model(seeded(Tiny)), image)


def test_torchvision_s_networks_segment_and_all_their_layers_are_maps() -> None:
    model = hookviz.load_model("lraspp_mobilenet_v3_large", "random")
    image = torch.rand(1, 3, 96, 64)
    maps = hookviz.segmentation_maps(model, image)
    assert maps.probabilities.shape == (21, 96, 64)
    assert "cat" in maps
    with torch.no_grad():
        scores = model.network(image)["out"][0]
    assert torch.allclose(maps.probabilities, scores.softmax(0), atol=1e-6)
    cap = hookviz.capture(model, image)
    assert len(cap) > 60
    assert cap.logits is not None
    assert torch.allclose(cap.logits, scores.mean((1, 2)), atol=1e-5)
    winners = scores.argmax(0)
    assert dict(cap.likeliest(21)) == {
        number: pytest.approx(float((winners == number).float().mean())) for number in range(21)
    }
