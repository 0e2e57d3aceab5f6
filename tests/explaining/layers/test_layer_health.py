import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.layers.layer_health import network_health
from tests.networks import as_model, seeded


class Tokens(nn.Module):
    """Patches as tokens, (N, L, C), as many as there are channels."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, stride=4)
        self.linear = nn.Linear(16, 16)
        self.relu = nn.ReLU()
        self.attention = nn.MultiheadAttention(16, 1, batch_first=True)
        self.windows = nn.LayerNorm(16)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.relu(self.linear(self.patches(images).flatten(2).transpose(1, 2)))
        values = self.attention(tokens, tokens, tokens)[0]
        scores: Tensor = self.windows(values.reshape(4, 4, 16)).mean((0, 1))[None]
        return scores


def test_units_of_tokens_are_along_the_last_axis(noise: Tensor) -> None:
    network = seeded(Tokens)
    with torch.no_grad():
        for layer in (network.linear, network.attention.out_proj, network.windows):
            layer.weight[4:] = 0
            assert layer.bias is not None
            layer.bias[4:] = 0
    model = as_model(network)
    outputs = network_health(model, prepare(model, noise), "linear").outputs
    units = {str(output.address): (output.units, output.dead) for output in outputs}
    assert units["patches"][0] == 16
    assert units["linear"] == (16, 12)
    assert units["relu"][1] >= 12
    assert units["windows"] == (16, 12)  # four windows of four tokens
    assert units["attention[0]"] == (16, 12)
    assert units["attention[1]"] == (0, 0)  # of tokens by tokens


class Inside(nn.Module):
    """Puts out a tensor of another kind, beside its numbers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        odd = images.to_sparse() if self.kind == "sparse" else images.to("meta")
        return {"plain": images, "odd": odd}


class Around(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.inside = Inside(kind)
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(self.inside(images)["plain"])
        return values


@pytest.mark.parametrize(("kind", "count"), [("sparse", 768), ("meta", 0)])
def test_odd_tensors_are_looked_at_or_left_out(noise: Tensor, kind: str, count: int) -> None:
    model = as_model(seeded(lambda: Around(kind)))
    outputs = network_health(model, prepare(model, noise), "conv").outputs
    by_part = {
        output.address.path: output for output in outputs if output.address.layer == "inside"
    }
    assert by_part[("plain",)].count == 768
    if count:
        assert by_part[("odd",)].count == count
        assert by_part[("odd",)].largest == float(noise.abs().max())
    else:
        assert ("odd",) not in by_part
