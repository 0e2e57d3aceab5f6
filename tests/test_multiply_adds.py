"""Multiply-adds of recurrent layers and of attention, against torchinfo."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.kinds_of_networks import KINDS
from tests.networks import seeded

torchinfo = pytest.importorskip("torchinfo")


class Rows(nn.Module):
    """Rows of a grey picture as steps of a recurrent layer, or as tokens that attend."""

    def __init__(self, part: nn.Module, *, attends: bool = False) -> None:
        super().__init__()
        self.part, self.attends = part, attends

    def forward(self, images: Tensor) -> Tensor:
        rows = images[:, 0]
        output: Tensor = (self.part(rows, rows, rows) if self.attends else self.part(rows))[0]
        return output.mean(1)


PARTS: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: Rows(nn.LSTM(16, 12, batch_first=True)),
    "GRU of two layers": lambda: Rows(nn.GRU(16, 12, 2, bidirectional=True, batch_first=True)),
    "RNN without bias": lambda: Rows(nn.RNN(16, 12, bias=False, batch_first=True)),
    "attention": lambda: Rows(nn.MultiheadAttention(16, 2, batch_first=True), attends=True),
    "behind a convolution": KINDS["LSTM"].build,
    "frames": KINDS["frames"].build,
}


@pytest.mark.parametrize("build", PARTS.values(), ids=PARTS)
def test_multiply_adds_are_those_of_torchinfo(build: Callable[[], nn.Module]) -> None:
    network = seeded(build).eval()
    shape = (3, 4, 16, 16) if build is KINDS["frames"].build else (1, 16, 16)
    passed = torchinfo.summary(seeded(build), (1, *shape), verbose=0, mode="train")
    # Its total leaves attention out, which has a part that does not run by itself; its rows do not.
    known = passed.total_mult_adds or passed.summary_list[0].macs
    model = hookviz.wrap(network, example=(torch.rand(1, *shape),))
    layers = hookviz.list_layers(model, kind="all")
    assert sum(layer.multiply_adds * layer.calls for layer in layers) == known
    summary = hookviz.run_lens("summary", model, torch.rand(1, *shape))
    assert summary.values["multiply_adds"].sum() == known


def test_steps_come_first_or_second() -> None:
    """torchinfo takes the batch for the steps where these come first; the work is the same."""
    layer = nn.LSTM(16, 12)
    network = nn.Sequential(nn.Flatten(0, 1), layer)  # (16, 16): 16 steps, no batch
    model = hookviz.wrap(network, example=(torch.rand(1, 1, 16, 16),))
    found = hookviz.list_layers(model, kind="all")[-1]
    assert found.multiply_adds == 16 * sum(each.numel() for each in layer.parameters())
