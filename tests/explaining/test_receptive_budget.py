"""A pass is followed for so long, with so many edges, and then taken to see all of the image."""

import math

import pytest
import torch
from torch import nn

from hookviz.explaining.receptive_budget import Budget
from hookviz.explaining.receptive_field import trace_fields
from tests.networks import Tiny, seeded


def passed(network: nn.Module, budget: Budget) -> dict[str, tuple[int, int] | None]:
    fields = trace_fields(network.eval(), torch.zeros(1, 3, 16, 16), budget=budget)
    return {address: field.size for address, field in fields.items()}


def test_beyond_the_time_a_layer_sees_all() -> None:
    ticks = iter(range(10_000))
    plenty = passed(seeded(Tiny), Budget(seconds=1e9, clock=lambda: float(next(ticks))))
    assert plenty == {
        "conv1": (3, 3),
        "relu": (3, 3),
        "conv2": (5, 5),
        "relu#1": (5, 5),
        "head": (16, 16),
    }
    ticks = iter(range(10_000))
    short = passed(seeded(Tiny), Budget(seconds=1, clock=lambda: float(next(ticks))))
    assert short == dict.fromkeys(("relu", "conv2", "relu#1")) | {
        "conv1": (3, 3),
        "head": (16, 16),
    }


def test_beyond_the_memory_a_layer_sees_all() -> None:
    edges = 4 * 16 + 4 * 16  # of the image and of the first map; and of what is kept
    assert passed(seeded(Tiny), Budget(values=4 * edges))["relu#1"] == (5, 5)
    assert passed(seeded(Tiny), Budget(values=edges))["relu#1"] is None


def test_the_edges_of_a_large_network_that_pads_are_few() -> None:
    """As TensorFlow does: as much before and behind each map as its side and stride take."""
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        network = timm.create_model("tf_efficientnet_b0", pretrained=False).eval()
        image = torch.empty(1, 3, 513, 513)
    budget = Budget(seconds=math.inf, values=500_000)  # 2 MB
    fields = trace_fields(network, image, budget=budget)
    assert not budget.spent
    assert fields["blocks.0.0.conv_dw"].size == (7, 7)
    assert fields["conv_head"].size is None
