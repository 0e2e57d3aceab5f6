from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.layers.training_health import (
    clip_factor,
    nearest_strength,
    network_health,
    verdicts_of,
    weight_gradients,
)
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
    outputs = network_health(model, prepare_input(model, noise), "linear").outputs
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
    outputs = network_health(model, prepare_input(model, noise), "conv").outputs
    by_part = {
        output.address.path: output for output in outputs if output.address.layer == "inside"
    }
    assert by_part[("plain",)].count == 768
    if count:
        assert by_part[("odd",)].count == count
        assert by_part[("odd",)].largest == float(noise.abs().max())
    else:
        assert ("odd",) not in by_part


def test_clipping_makes_smaller_and_layers_are_compared_with_that_nearest_to_the_loss() -> None:
    assert clip_factor(0.5, 1.0) == 1.0
    assert clip_factor(4.0, 1.0) == pytest.approx(0.25, rel=1e-5)
    norms = np.array([1e-9, 1.0, np.nan, 1e6, 1.0, 0.0])
    strengths = np.array([1e-9, 0.1, np.nan, 1e6, 0.1, 0.0])
    assert nearest_strength(norms, strengths) == 0.1
    said = ["vanishing", "", "exploding", "exploding", "", "vanishing"]
    assert verdicts_of(norms, strengths) == said
    assert np.isnan(nearest_strength(norms[-1:], strengths[-1:]))


class _Complex(nn.Module):
    """A convolution and a linear layer of complex numbers, whose sizes are the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, dtype=torch.complex64)
        self.head = nn.Linear(4, 5, dtype=torch.complex64)

    def forward(self, images: Tensor) -> Tensor:
        means = self.conv(images.to(torch.complex64)).mean((2, 3))
        scores: Tensor = self.head(means).abs()
        return scores


def test_complex_weights_have_gradients_and_norms_too(noise: Tensor) -> None:
    model = as_model(seeded(_Complex))
    gradients = weight_gradients(model, prepare_input(model, noise), 2)
    other = seeded(_Complex).requires_grad_()
    F.cross_entropy(other(noise), torch.tensor([2])).backward()  # type: ignore[no-untyped-call]
    assert list(gradients.by_layer) == ["conv", "head"]
    for index, (name, gradient) in enumerate(gradients.by_layer.items()):
        theirs: Any = other.get_parameter(f"{name}.weight").grad
        torch.testing.assert_close(gradient, theirs)
        assert gradients.norms[index] == pytest.approx(theirs.abs().square().sum().sqrt().item())
    every = torch.cat([one.grad.flatten() for one in other.parameters() if one.grad is not None])
    assert gradients.total_norm == pytest.approx(every.abs().square().sum().sqrt().item())
    limit = gradients.total_norm / 10
    theirs = other.get_parameter("conv.weight").grad
    assert theirs is not None
    torch.testing.assert_close(
        gradients.clipped("by norm", limit)[0], theirs / 10, rtol=1e-3, atol=0
    )
    small = float(theirs.real.abs().mean())
    clipped = gradients.clipped("by value", small)[0]
    torch.testing.assert_close(clipped.real, theirs.real.clamp(-small, small))
    torch.testing.assert_close(clipped.imag, theirs.imag.clamp(-small, small))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
def test_the_weights_of_a_script_count_in_the_whole(noise: Tensor) -> None:
    def build() -> nn.Sequential:
        return nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(4, 5)),
        )

    whole = as_model(seeded(build))
    network = seeded(build)
    network[1] = torch.jit.script(network[1])
    model = as_model(network)
    of_script, of_all = (
        weight_gradients(one, prepare_input(one, noise), 1) for one in (model, whole)
    )
    assert list(of_script.by_layer) == ["0", "4"]
    assert of_script.total_norm == pytest.approx(of_all.total_norm, rel=1e-5)
