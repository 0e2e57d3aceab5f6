"""Why a cell has its value, as data, beside test_origin.py, which has its numbers."""

import pytest
import torch
from torch import nn

from hookviz.explaining.layers.layer_call import LayerCall, explain_cell
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explorer.cell_sum import cell_sum
from tests.networks import as_model, random_input, seeded


class Wide(nn.Module):
    """A convolution of nine inputs, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Conv2d(3, 9, 1)
        self.conv = nn.Conv2d(9, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.norm(self.conv(self.spread(images))).relu()
        scores: torch.Tensor = self.head(maps.mean((2, 3)))
        return scores


@pytest.fixture
def network() -> Wide:
    return seeded(Wide).eval()


@pytest.fixture
def call(network: Wide) -> LayerCall:
    return record_layer_call(as_model(network), random_input(3), "conv")


def test_it_says_that_the_sum_is_the_networks_and_what_followed(
    network: Wide, call: LayerCall
) -> None:
    facts = cell_sum(explain_cell(call, 0, 0, 0), None, "coolwarm")
    words = "".join(part for part, _ in facts["sum"])
    assert words.endswith("as the network computed")
    assert "bias" in dict(facts["sum"])
    assert dict(facts["sum"])["bias"].startswith("One learned number")
    norm, relu = ("".join(part for part, _ in step) for step in facts["steps"])
    assert norm.startswith("BatchNorm2d norm (value − ")
    assert "relu" in relu.lower()


def test_a_sum_of_few_inputs_has_no_rest() -> None:
    model = as_model(seeded(Wide).eval())
    facts = cell_sum(
        explain_cell(record_layer_call(model, random_input(1), "spread"), 1, 5, 5),
        None,
        "PuOr",
    )
    assert len(facts["rows"]) == 3
    assert facts["rest"] == ""
    assert facts["colours"] == "PuOr"
