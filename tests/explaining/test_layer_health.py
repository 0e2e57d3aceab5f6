import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.layer_health import network_health
from hookviz.types import Model
from tests.networks import Tiny, all_hooks, as_model, seeded


def test_every_output_is_looked_at_before_it_is_overwritten(tiny: Model, noise: Tensor) -> None:
    health = network_health(tiny, prepare(tiny, noise), "conv1")
    assert [str(output.address) for output in health.outputs] == [
        *("conv1", "relu", "conv2", "relu#1", "head")
    ]
    conv = tiny.network.get_submodule("conv1")
    np.testing.assert_array_equal(health.values["conv1"], conv(noise).detach().flatten().numpy())
    assert health.first_bad is None
    assert health.limit == pytest.approx(1e4 * max(1.0, float(noise.abs().max())))


def test_the_first_bad_output_is_kept_beside_the_one_asked_for(noise: Tensor) -> None:
    network = seeded(Tiny)
    network.conv2.weight.detach()[0, 0, 0, 0] = torch.inf
    health = network_health(as_model(network), prepare(as_model(network), noise), "head")
    assert health.first_bad is not None
    assert health.first_bad.address.layer == "conv2"
    assert health.first_bad.bad_parameters == ("weight",)
    assert not health.first_bad.input_bad
    assert list(health.values) == ["conv2", "head"]


def test_dead_and_saturated_units_are_counted(noise: Tensor) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid())

    network = seeded(build)
    conv = network.get_submodule("0")
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    conv.weight.detach()[1:] = 0  # three channels with one value everywhere
    conv.bias.detach()[:] = torch.tensor([0.0, 9.0, -9.0, 0.0])
    model = as_model(network)
    first, second = network_health(model, prepare(model, noise), "0").outputs
    assert (first.units, first.dead) == (second.units, second.dead) == (4, 3)
    assert np.isnan(first.saturated)
    assert second.saturated >= 0.5


def test_progress_goes_call_by_call_and_can_end_it(tiny: Model, noise: Tensor) -> None:
    shares: list[float] = []
    network_health(tiny, prepare(tiny, noise), "head", shares.append)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])

    def stop(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        network_health(tiny, prepare(tiny, noise), "head", stop)
    assert all_hooks(tiny) == 0


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
