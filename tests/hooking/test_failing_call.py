from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking.failing_call import expected, failing_call
from tests.conftest import Tiny, all_hooks, as_model, hook_count, random_input, seeded


class Catches(nn.Module):
    """Goes another way where its first layer fails, and fails itself in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(4, 4)

    def forward(self, values: Tensor) -> Tensor:
        try:
            found: Tensor = self.first(values)
        except RuntimeError:
            found = self.second(values)
        return found @ values


def test_it_is_the_innermost_layer_with_what_ran_before_it() -> None:
    network = nn.Sequential(seeded(Tiny), nn.Softmax(1))
    given = random_input(0)
    network[0].conv2 = nn.Conv2d(5, 6, 3)
    found = failing_call(network, lambda: network(given))
    assert found is not None
    assert (found.layer, found.kind, found.shapes) == ("0.conv2", "Conv2d", ((1, 4, 16, 16),))
    assert found.before == ("0.conv1", "0.relu")
    assert str(found) == (
        "0.conv2 (Conv2d), which takes 5 channels in N×C×H×W, of at least 3×3 with padding, fails "
        "on 1×4×16×16, after 0.conv1, 0.relu"
    )
    assert hook_count(network) == 0


def test_a_failure_that_the_network_caught_is_not_where_it_failed() -> None:
    network = Catches()
    found = failing_call(network, lambda: network(torch.ones(2, 4)))
    assert found is not None
    assert (found.layer, found.kind, found.before) == ("", "Catches", ("second",))
    assert str(found) == "its own code (Catches) fails on 2×4, after second"


def test_a_pass_that_works_or_fails_elsewhere_has_none() -> None:
    network = seeded(Tiny)
    assert failing_call(network, lambda: network(random_input(0))) is None
    assert failing_call(network, lambda: 1 / 0) is None


@pytest.mark.parametrize(
    ("module", "given"),
    [
        (nn.Conv2d(3, 8, 5, dilation=2), (1, 4, 16, 16)),
        (nn.Conv2d(3, 8, 5, dilation=2), (1, 3, 8, 8)),
        (nn.ConvTranspose1d(3, 8, 5), (1, 4, 16)),
        (nn.Linear(1000, 8), (1, 999)),
        (nn.BatchNorm2d(7).eval(), (1, 6, 2, 2)),
        (nn.GroupNorm(2, 6), (1, 5, 2, 2)),
        (nn.LayerNorm((3, 4)), (1, 4, 3)),
        (nn.LSTM(5, 3), (2, 1, 4)),
    ],
)
def test_what_torch_refuses_is_told_with_the_numbers_of_the_module(
    module: nn.Module, given: tuple[int, ...]
) -> None:
    network = nn.Sequential(module)
    found = failing_call(network, lambda: network(torch.ones(given)))
    assert found is not None
    assert found.shapes == (given,)
    assert found.before == ()
    numbers = {
        "Conv2d": "3 channels in N×C×H×W, of at least 9×9 with padding",
        "ConvTranspose1d": "3 channels in N×C×W",
        "Linear": "1,000 numbers along the last dimension",
        "BatchNorm2d": "7 channels",
        "GroupNorm": "6 channels",
        "LayerNorm": "3×4 as the last dimensions",
        "LSTM": "5 numbers along the last dimension",
    }
    assert found.expected == numbers[type(module).__name__]


def test_others_say_nothing_of_what_they_take() -> None:
    assert expected(nn.ReLU()) == ""
    assert expected(nn.Embedding(10, 2)) == "whole numbers from 0 to 9"
    assert expected(nn.MultiheadAttention(8, 2)) == "vectors of 8 numbers"


@pytest.mark.parametrize(
    "call",
    [hookviz.capture, lambda model, given: hookviz.list_layers(model, input_shape=given.shape[1:])],
)
def test_people_are_told_where_a_pass_fails(call: Any) -> None:
    model = as_model(seeded(Tiny))
    with pytest.raises(hookviz.ModelError) as caught:
        call(model, random_input(0)[:, :2])
    said = str(caught.value)
    assert said.startswith(
        "Tiny can't take an input of 2×16×16: conv1 (Conv2d), which takes 3 channels in N×C×H×W, "
        "of at least 3×3 with padding, fails on 1×2×16×16, before any other layer: "
    )
    assert said.endswith("It is made for 3×16×16.")
    assert all_hooks(model) == 0
