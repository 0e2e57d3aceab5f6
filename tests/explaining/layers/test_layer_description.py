import pytest
from torch import Tensor, nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.explaining.layers.layer_description import describe_layer
from tests.networks import as_model


class Halves(nn.ReLU):
    """A ReLU by name alone."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps / 2


def effects(*modules: nn.Module) -> list[str]:
    model = as_model(nn.Sequential(nn.Conv2d(3, 4, 1), *modules))
    return [describe_layer(model, layer) for layer in layer_trace(model, (3, 16, 16)).maps[1:]]


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (nn.ReLU(inplace=True), "ReLU keeps what is above zero"),
        (nn.LeakyReLU(0.25), "multiplies what is below by 0.25"),
        (nn.MaxPool2d(3, 2), "MaxPool2d keeps the largest of each 3×3 cells, in steps of 2."),
        (nn.MaxPool2d((3, 2), (2, 1)), "of each 3×2 cells, in steps of 2 down and 1 across."),
        (nn.AvgPool2d(3, 1), "AvgPool2d keeps the mean of each 3×3 cells, cell by cell."),
        (nn.AdaptiveAvgPool2d(1), "one number of each channel: the mean of its map."),
        (nn.AdaptiveMaxPool2d((4, 2)), "so that 4×2 cells are left."),
        (nn.BatchNorm2d(4), "both learned from the training images, then multiplies"),
        (nn.InstanceNorm2d(4), "both of this image."),
        (nn.GroupNorm(2, 4), "of each of 2 groups"),
        (nn.Dropout2d(), "hands its input on as it is"),
        (nn.PixelShuffle(2), "lays 4 channels out as one of 2 times the side"),
    ],
)
def test_a_class_of_torch_is_described(module: nn.Module, says: str) -> None:
    [sentence] = effects(module)
    assert says in sentence
    assert sentence.endswith(".")


def test_unknown_code_is_described_by_its_shapes_and_a_block_by_its_parts() -> None:
    assert effects(Halves()) == [
        "Halves makes maps of its input by code of its own: 4×16×16 in, 4×16×16 out."
    ]
    block, *_ = effects(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)))
    assert block == (
        "Sequential is a block of 2 layers, and these maps are its result: 4×16×16 in, 4×8×8 out."
    )
