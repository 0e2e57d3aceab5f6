"""A network exported with its layers computes what PyTorch does, or it is refused by name."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import ModelError
from hookviz.explorer.subject import make_subject
from hookviz.images.samples import samples
from hookviz.standalone.onnx_network import TOLERANCE, export_network
from hookviz.types import ActivationKey
from tests.networks import Tiny, seeded

PHOTO = next(each.path for each in samples() if each.kind == "photo")


class Shared(nn.Module):
    """A small U-Net: one convolution runs twice, and its ReLUs are functions and in place."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="reflect")
        self.norm = nn.BatchNorm2d(4).eval()
        self.relu = nn.ReLU(inplace=True)
        self.twice = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.end = nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 5, 1))

    def forward(self, image: Tensor) -> Tensor:
        """Return a map of five classes."""
        first = self.relu(self.norm(self.begin(image)))
        second = functional.relu(self.twice(first), inplace=True)
        third = functional.max_pool2d(functional.relu(self.twice(second)), 2)
        grown = functional.interpolate(third, scale_factor=2.0) + first
        scores: Tensor = self.end(grown).mean((2, 3))
        return scores


class Noisy(Tiny):
    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image + torch.rand_like(image))


class Undecided(Tiny):
    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image if image.sum() > 0 else -image)


STEPS = hookviz.Preprocess(resize=64, crop=64)


def wrapped(kind: type[nn.Module]) -> hookviz.Model:
    return hookviz.wrap(seeded(kind), STEPS, [f"class {at}" for at in range(5)], output="logits")


@pytest.mark.parametrize("name", ["Shared", "shapesvit"])
def test_every_output_of_every_layer_is_pytorch_s(name: str) -> None:
    model = wrapped(Shared) if name == "Shared" else hookviz.load_model(name)
    image = prepare_input(model, PHOTO)
    layers = [each.name for each in make_subject(model, image).trace.usual]
    exported = export_network(model, [image], layers, [])
    capture = hookviz.capture(model, image, layers)
    assert set(map(str, exported.outputs)) == {str(each.address) for each in capture.activations}
    assert 0 < exported.error < TOLERANCE / 10
    assert exported.has_scores
    if name == "Shared":
        assert ActivationKey("twice", 1) in exported.outputs


@pytest.mark.parametrize(
    ("kind", "says"),
    [(Noisy, "conv1 of Noisy differs from PyTorch"), (Undecided, "can't be exported as ONNX")],
)
def test_what_is_not_the_same_network_is_refused(kind: type[nn.Module], says: str) -> None:
    model = wrapped(kind)
    with pytest.raises(ModelError, match=says):
        export_network(model, [prepare_input(model, PHOTO)], ["conv1"], [])
