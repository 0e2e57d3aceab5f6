"""Networks that compare equal, as dataclasses do, and are two all the same."""

from dataclasses import dataclass

import torch
from torch import nn

import hookviz
from hookviz.explaining.receptive_field import receptive_fields


@dataclass(eq=False)
class _ByFields(nn.Module):
    """Equal to another one of the same width, whatever its weights and kernels are."""

    width: int
    kernel: int = 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByFields) and self.width == other.width

    def __hash__(self) -> int:
        return hash(self.width)

    def __post_init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, self.width, self.kernel)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.conv(images).relu()


def _two() -> tuple[_ByFields, _ByFields]:
    torch.manual_seed(0)
    return _ByFields(4), _ByFields(4, kernel=5)


def test_each_of_two_equal_networks_shows_its_own_maps() -> None:
    first, second = _two()
    assert first == second
    image = torch.rand(1, 3, 32, 32)
    models = [hookviz.wrap(network) for network in (first, second)]  # both are there all the time
    for network, model in zip((first, second), models, strict=True):
        shown = hookviz.capture(model, image)["conv"].values
        with torch.no_grad():
            assert torch.equal(shown, network.conv(image)[0])


def test_each_of_two_equal_networks_has_its_own_receptive_field() -> None:
    models = [hookviz.wrap(network) for network in _two()]
    sizes = [receptive_fields(model, (3, 32, 32))["conv"].size for model in models]
    assert sizes == [(3, 3), (5, 5)]
