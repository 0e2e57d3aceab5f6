import io
from collections.abc import Callable
from contextlib import suppress
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


def test_it_is_the_innermost_layer_with_what_ran_before_it() -> None:
    network = nn.Sequential(seeded(Tiny), nn.Softmax(1))
    given = random_input(0)
    assert failing_call(network, lambda: network(given)) is None
    assert failing_call(network, lambda: 1 / 0) is None
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
    class Catches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(4, 4)

        def forward(self, values: Tensor) -> Tensor:
            with suppress(RuntimeError):
                self.first(values)
            return self.second(values) @ values  # type: ignore[no-any-return]

    network = Catches()
    found = failing_call(network, lambda: network(torch.ones(2, 4)))
    assert found is not None
    assert (found.layer, found.kind, found.before) == ("", "Catches", ("second",))
    assert str(found) == "its own code (Catches) fails on 2×4, after second"


@pytest.mark.parametrize(
    ("module", "given", "numbers"),
    [
        (
            nn.Conv2d(3, 8, 5, dilation=2),
            (1, 4, 16, 16),
            "3 channels in N×C×H×W, of at least 9×9 with padding",
        ),
        (
            nn.Conv2d(3, 8, 5, dilation=2),
            (1, 3, 8, 8),
            "3 channels in N×C×H×W, of at least 9×9 with padding",
        ),
        (nn.ConvTranspose1d(3, 8, 5), (1, 4, 16), "3 channels in N×C×W"),
        (nn.Linear(1000, 8), (1, 999), "1,000 numbers along the last dimension"),
        (nn.BatchNorm2d(7).eval(), (1, 6, 2, 2), "7 channels"),
        (nn.GroupNorm(2, 6), (1, 5, 2, 2), "6 channels"),
        (nn.LayerNorm((3, 4)), (1, 4, 3), "3×4 as the last dimensions"),
        (nn.LSTM(5, 3), (2, 1, 4), "5 numbers along the last dimension"),
        (nn.MaxPool2d((3, 4), dilation=3), (1, 6, 6, 16), "maps of at least 7×10 with padding"),
        (nn.AvgPool3d(5), (1, 2, 5, 5, 4), "maps of at least 5×5×5 with padding"),
    ],
)
def test_what_torch_refuses_is_told_with_the_numbers_of_the_module(
    module: nn.Module, given: tuple[int, ...], numbers: str
) -> None:
    network = nn.Sequential(module)
    found = failing_call(network, lambda: network(torch.ones(given)))
    assert found is not None
    assert (found.shapes, found.before, found.expected) == ((given,), (), numbers)
    assert expected(nn.ReLU()) == expected(type("Own", (nn.MaxPool2d,), {})(2)) == ""
    assert expected(nn.Embedding(10, 2)) == "whole numbers from 0 to 9"
    assert expected(nn.MultiheadAttention(8, 2)) == "vectors of 8 numbers"


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
    with pytest.raises(hookviz.ModelError, match=r"It is made for 3×16×16\.$"):
        hookviz.list_layers(as_model(seeded(Tiny)), input_shape=(2, 16, 16))


class Own(nn.Module):
    """Runs layers, and then code of its own that fails."""

    def __init__(self, fail: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.fail, self.layers = fail, nn.ModuleList(layers)

    def forward(self, images: Tensor) -> Tensor:
        return self.fail(*(layer(images) for layer in self.layers))


FAILING: dict[str, tuple[nn.Module, str]] = {
    "first": (
        seeded(lambda: nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU())),
        "Sequential can't take an input of 3×16×16: 0 (Conv2d), which takes 4 channels in N×C×H×W, "
        "of at least 3×3 with padding, fails on 1×3×16×16, before any other layer: ",
    ),
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
        nn.Sequential(
            nn.Conv2d(3, 3, 3), Own(lambda _: dict[str, Tensor]()["mask"], nn.Conv2d(3, 4, 3))
        ),
        "1 (Own) fails on 1×3×14×14, after 0, 1.layers.0: KeyError: 'mask'.",
    ),
    "between": (
        Own(torch.add, nn.Conv2d(3, 4, 3), nn.Conv2d(3, 5, 3)),
        "its own code (Own) fails on 1×3×16×16, after layers.0, layers.1: ",
    ),
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
            network, hookviz.prepare_input(model, image).tensor, file=io.StringIO()
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
