import io
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking.failing_call import expected, failing_call
from tests.every_lens import OF_ANY_NETWORK
from tests.networks import Tiny, all_hooks, as_model, hook_count, random_input, seeded
from tests.pictures import picture


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
        (nn.MaxPool2d((3, 4), dilation=3), (1, 6, 6, 16)),
        (nn.AvgPool3d(5), (1, 2, 5, 5, 4)),
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
        "MaxPool2d": "maps of at least 7×10 with padding",
        "AvgPool3d": "maps of at least 5×5×5 with padding",
    }
    assert found.expected == numbers[type(module).__name__]


def test_others_say_nothing_of_what_they_take() -> None:
    assert expected(nn.ReLU()) == ""
    assert expected(type("Own", (nn.MaxPool2d,), {})(2)) == ""
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


def test_a_size_that_no_pass_has_shown_is_not_told_as_its_own() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 10 * 18, 2))
    model = hookviz.wrap(network)  # of no square
    with pytest.raises(hookviz.ModelError) as caught:
        hookviz.capture(model, picture())
    assert "which it was thought to be made for: wrap(network, example=…)" in str(caught.value)
    given = torch.ones(1, 1, 12, 20)
    scores = hookviz.capture(hookviz.wrap(network, example=(given,)), given).logits
    assert scores is not None
    torch.testing.assert_close(scores, network(given)[0].detach())


class Raises(nn.Module):
    """Looks for something that nobody gave it, after its own layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        found: dict[str, Tensor] = {"maps": self.conv(images)}
        return found["mask"]


class Joined(nn.Module):
    """Adds what does not fit together, between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.four, self.five = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 5, 3)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.four(images) + self.five(images)
        return found


FAILING: dict[str, tuple[nn.Module, str]] = {
    "channels": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(5, 6, 3)),
        "2 (Conv2d), which takes 5 channels in N×C×H×W, of at least 3×3 with padding, fails on "
        "1×4×14×14, after 0, 1: ",
    ),
    "numbers": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(9, 2)),
        "2 (Linear), which takes 9 numbers along the last dimension, fails on 1×784, after 0, 1: ",
    ),
    "too small": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(15)),
        "1 (MaxPool2d), which takes maps of at least 15×15 with padding, fails on 1×4×14×14, "
        "after 0: ",
    ),
    "its own": (
        nn.Sequential(nn.Conv2d(3, 3, 3), Raises()),
        "1 (Raises) fails on 1×3×14×14, after 0, 1.conv: KeyError: 'mask'.",
    ),
    "between": (Joined(), "its own code (Joined) fails on 1×3×16×16, after four, five: "),
}


@pytest.mark.parametrize("case", FAILING)
def test_whatever_runs_the_network_says_where_it_fails(case: str) -> None:
    network, where = FAILING[case]
    model = as_model(network)
    image = picture()
    calls: dict[str, Any] = {
        "capture": lambda: hookviz.capture(model, image),
        "capture_batch": lambda: hookviz.capture(model, [image]),
        "list_layers": lambda: hookviz.list_layers(model),
        "extract_features": lambda: hookviz.extract_features(model, [image]),
        "summary": lambda: hookviz.summary(
            network, hookviz.prepare(model, image).tensor, file=io.StringIO()
        ),
    }
    for lens in OF_ANY_NETWORK:
        calls[lens.slug] = partial(hookviz.run_lens, lens.slug, model, image)
    silent = []
    for name, call in calls.items():
        try:
            call()
        except hookviz.ModelError as error:
            assert where in str(error), name  # noqa: PT017 - those that run nothing succeed
        else:
            silent.append(name)
    assert silent == []
    assert all_hooks(model) == 0
