"""Networks that do more than compute: each against plain hooks on a twin."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm
from torch.nn.utils.parametrize import register_parametrization

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.types import Model
from tests.mirror import Mirror
from tests.networks import as_model, random_input, seeded
from tests.unharmed import conditions


class Odd(nn.Module):
    """A convolution, something odd done to what it puts out, and five classes."""

    def __init__(self, do: Callable[["Odd", Tensor, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.other = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("spread", torch.ones(4))
        self.calls = 0
        self.memory: list[float] = []
        self.do = do

    count: Tensor
    average: Tensor
    spread: Tensor

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        return activation if self.do is None else self.do(self, activation, images)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.odd(self.conv(images), images).mean((2, 3)))
        return scores


def clamps_data(_: Odd, activation: Tensor, images: Tensor) -> Tensor:
    activation.data.clamp_(0, 0.1)
    return activation


def writes_through_numpy(_: Odd, activation: Tensor, images: Tensor) -> Tensor:
    activation.detach().numpy()[...] *= 0.5
    return activation


def writes_through_storage(_: Odd, activation: Tensor, images: Tensor) -> Tensor:
    torch.empty(0).set_(activation.untyped_storage())[:5] = 7
    return activation


def writes_in_another_thread(_: Odd, activation: Tensor, images: Tensor) -> Tensor:
    thread = threading.Thread(target=lambda: activation.data.mul_(0.5))
    thread.start()
    thread.join()
    return activation


_script = torch.jit.CompilationUnit("def halve(x):\n    x.data.mul_(0.5)\n    return x\n")


def counts_in_a_buffer(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.count += 1
    return activation * own.count


def replaces_a_buffer(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.count = own.count + 1
    return activation * own.count


def counts_in_an_attribute(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.calls += 1
    return activation * own.calls


def remembers_in_a_list(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.memory.append(1.0)
    return activation * len(own.memory)


def normalises_in_training(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    return F.batch_norm(activation, own.average, own.spread, training=True, momentum=0.5)


def goes_on_without(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    """Swallows what only goes wrong without data."""
    try:
        activation[activation > 0] *= 0.5
        other: Tensor = own.other(images)
    except Exception:  # noqa: BLE001 - as code for optional libraries does
        return activation
    return activation + other


def fails_on_zeros(_: Odd, activation: Tensor, images: Tensor) -> Tensor:
    if not images.any():
        raise ValueError("no image")
    return activation


def clips_its_weights(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.other.weight.data = torch.renorm(own.other.weight.data, 2, 0, 0.1)
    return activation + own.other(images)  # type: ignore[no-any-return]


def calls_by_value(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    for _ in range(1 + int(images.mean() > 0)):
        activation = activation + own.conv(images)
    return activation


def calls_more_each_time(own: Odd, activation: Tensor, images: Tensor) -> Tensor:
    own.calls += 1
    for _ in range(own.calls):
        activation = activation + own.conv(images)
    return activation + own.other(images)  # type: ignore[no-any-return]


_script = torch.jit.CompilationUnit("def halve(x):\n    x.data.mul_(0.5)\n    return x\n")


class _Counter(nn.Module):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x / self.calls


class _Part(nn.Module):
    """Counts as a layer, as it holds numbers of its own, and so does what is inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.counter = _Counter()

    def forward(self, x: Tensor) -> Tensor:
        counted: Tensor = self.counter(self.counter(x))
        return counted * self.scale


class CountsInAPart(Odd):
    def __init__(self) -> None:
        super().__init__()
        self.part = _Part()

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        counted: Tensor = self.part(activation)
        return counted


class CountsOutOfSight(Odd):
    """In a module that the network does not know of."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = [_Counter()]

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        counted: Tensor = self.hidden[0](activation)
        return counted


class _Remembers(nn.Module):
    """Keeps its input, and writes into the next one, which can be the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(0.5)
        last = self.kept.get("last")
        self.kept["last"] = x.detach()
        return x if last is None else x + last


class RemembersItsInput(Odd):
    def __init__(self) -> None:
        super().__init__()
        self.part = _Remembers()

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        added: Tensor = self.part(self.part(activation))
        return added


class CountsInAParametrisation(Odd):
    def __init__(self) -> None:
        super().__init__()
        register_parametrization(self.conv, "weight", _Counter())


class ReplacedForward(Odd):
    def __init__(self) -> None:
        super().__init__()
        own = self.conv.forward
        self.conv.forward = lambda x: own(x) * 2  # type: ignore[assignment,method-assign]


class WithoutGradients(Odd):
    def forward(self, images: Tensor) -> Tensor:
        with torch.inference_mode():
            scores: Tensor = super().forward(images)
            return scores


class OldWeightNorm(Odd):
    def __init__(self) -> None:
        super().__init__()
        weight_norm(self.conv)


class SpectralNorm(Odd):
    def __init__(self) -> None:
        super().__init__()
        parametrizations.spectral_norm(self.conv)
        self.conv.train()

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.conv.train()
        return activation


STILL: list[Callable[[], Odd]] = [
    *(Odd, WithoutGradients, OldWeightNorm, SpectralNorm, ReplacedForward),
    *(
        partial(Odd, do)
        for do in (
            *(clamps_data, writes_through_numpy, writes_through_storage, counts_in_a_buffer),
            *(replaces_a_buffer, normalises_in_training, clips_its_weights, calls_by_value),
            *(writes_in_another_thread, goes_on_without, fails_on_zeros),
            lambda own, maps, images: maps + own.other(images) if images.mean() > 0 else maps,
            lambda _own, maps, _images: _script.halve(maps),
        )
    ),
]
MOVING: list[Callable[[], Odd]] = [
    *(CountsInAPart, CountsOutOfSight, RemembersItsInput, CountsInAParametrisation),
    *map(partial, (Odd,) * 3, (counts_in_an_attribute, remembers_in_a_list, calls_more_each_time)),
]
"""What each call leaves otherwise than it found it, so that no second one computes the same."""
ODD = [*STILL, *MOVING]
pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")


def bright(seed: int = 0) -> Tensor:
    return random_input(seed) + 2


def mirrored(build: Callable[[], Odd]) -> tuple[Model, Mirror]:
    network = seeded(build).eval()
    return as_model(network), Mirror(network, seeded(build).eval())


@pytest.mark.parametrize("build", ODD)
def test_every_value_is_that_of_as_many_plain_calls(build: Callable[[], Odd]) -> None:
    model, mirror = mirrored(build)
    for image in (random_input(1) - 2, bright(), random_input(2) - 2):
        cap = hookviz.capture(model, image)
        truth = mirror.truth()
        assert list(cap) == list(truth.convs)
        assert all(torch.equal(cap[name].raw, truth.activations[name][0]) for name in cap)
        assert cap.logits is not None
        assert truth.scores is not None
        assert torch.equal(cap.logits, truth.scores[0])


def test_what_a_network_runs_once_alone_is_not_cached() -> None:
    """Its next pass runs other calls, in another order."""
    model, mirror = mirrored(partial(Odd, calls_more_each_time))
    cache = Budget(10**7).cache(10**7)
    for _ in range(3):
        cap = hookviz.capture(model, bright(), cache=cache)
        assert list(cap) == list(mirror.truth().convs)


@pytest.mark.parametrize("build", ODD)
def test_what_is_set_is_taken_back(build: Callable[[], Odd]) -> None:
    network = seeded(build).train()
    network.head.eval()
    before = conditions(network)
    model = as_model(network)
    hookviz.capture(model, bright())
    for slug in ("verify", "health", "grad-cam"):
        with suppress(hookviz.HookVizError):  # not all can be differentiated
            hookviz.run_lens(slug, model, bright())
    after = conditions(network)
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize("build", STILL)
def test_the_seal_is_true(build: Callable[[], Odd]) -> None:
    verdict: Any = hookviz.run_lens("verify", as_model(seeded(build)), bright()).panels[0]
    assert verdict.tone == "good", verdict.text
    assert "What is shown of" in verdict.text
