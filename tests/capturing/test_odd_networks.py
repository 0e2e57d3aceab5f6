"""Networks that do more than compute: each against plain hooks on a deep copy."""

import copy
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm
from torch.nn.utils.parametrize import register_parametrization

import hookviz
from hookviz.drawing.panels import TextPanel
from hookviz.hooking import purity
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded


class Odd(nn.Module):
    """A convolution, something odd done to what it puts out, and five classes."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.other = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("spread", torch.ones(4))
        self.calls = 0
        self.memory: list[float] = []

    count: Tensor
    average: Tensor
    spread: Tensor

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        return activation

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.odd(self.conv(images), images).mean((2, 3)))
        return scores


class ClampsData(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        activation.data.clamp_(0, 0.1)
        return activation


class WritesThroughNumPy(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        activation.detach().numpy()[...] *= 0.5
        return activation


class WritesThroughStorage(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        torch.empty(0).set_(activation.untyped_storage())[:5] = 7
        return activation


class WritesInAnotherThread(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: activation.data.mul_(0.5))
        thread.start()
        thread.join()
        return activation


class WritesInAScript(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        halved: Tensor = _script.halve(activation)
        return halved


_script = torch.jit.CompilationUnit("def halve(x):\n    x.data.mul_(0.5)\n    return x\n")


class CountsInABuffer(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.count += 1
        return activation * self.count


class CountsInAnAttribute(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.calls += 1
        return activation * self.calls


class RemembersInAList(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.memory.append(1.0)
        return activation * len(self.memory)


class ReplacesABuffer(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.count = self.count + 1
        return activation * self.count


class NormalisesInTraining(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        return F.batch_norm(activation, self.average, self.spread, training=True, momentum=0.5)


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


class GoesOnWithout(Odd):
    """Swallows what only goes wrong without data."""

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        try:
            activation[activation > 0] *= 0.5
            other: Tensor = self.other(images)
        except Exception:  # noqa: BLE001 - as code for optional libraries does
            return activation
        return activation + other


class FailsOnZeros(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        if not images.any():
            raise ValueError("no image")
        return activation


class CountsInAParametrisation(Odd):
    def __init__(self) -> None:
        super().__init__()
        register_parametrization(self.conv, "weight", _Counter())


class ReplacedForward(Odd):
    def __init__(self) -> None:
        super().__init__()
        own = self.conv.forward
        self.conv.forward = lambda x: own(x) * 2  # type: ignore[assignment,method-assign]


class ClipsItsWeights(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        self.other.weight.data = torch.renorm(self.other.weight.data, 2, 0, 0.1)
        other: Tensor = self.other(images)
        return activation + other


class TakesAWayByValue(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        return activation + self.other(images) if images.mean() > 0 else activation


class CallsByValue(Odd):
    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        for _ in range(1 + int(images.mean() > 0)):
            activation = activation + self.conv(images)
        return activation


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


ODD: list[type[Odd]] = [
    *(Odd, ClampsData, WritesThroughNumPy, WritesThroughStorage, CountsInABuffer),
    *(CountsInAnAttribute, RemembersInAList, ReplacesABuffer, NormalisesInTraining),
    *(ClipsItsWeights, TakesAWayByValue, CallsByValue, WithoutGradients, OldWeightNorm),
    *(SpectralNorm, WritesInAnotherThread, WritesInAScript, CountsInAPart),
    *(RemembersItsInput, GoesOnWithout, FailsOnZeros),
    *(CountsOutOfSight, CountsInAParametrisation, ReplacedForward),
]
pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")


def bright(seed: int = 0) -> Tensor:
    return random_input(seed) + 2


def by_plain_hooks(model: Model, image: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What conv layers put out and the scores, from hooks on a deep copy that copy at once."""
    network = copy.deepcopy(model.network)
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            calls = sum(key.partition("#")[0] == name for key in outputs)
            outputs[f"{name}#{calls}" if calls else name] = output.detach().clone()[0]

        return hook

    for name, module in network.named_modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(keep(name))
    with torch.no_grad():
        scores = network(image.clone())[0]
    return outputs, scores


def state(network: nn.Module) -> list[Any]:
    """Every parameter, buffer and attribute of every module, as values."""
    return [
        {
            key: value.clone().tolist() if isinstance(value, Tensor) else copy.deepcopy(value)
            for key, value in (
                *vars(module).items(),
                *module._parameters.items(),
                *module._buffers.items(),
            )
            if not isinstance(value, nn.Module) and not key.startswith("_")
        }
        for module in network.modules()
    ]


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("build", ODD)
def test_every_value_is_that_of_plain_hooks(build: type[Odd], logits: bool) -> None:
    model = as_model(seeded(build))
    for image in (random_input(1) - 2, bright(), random_input(2) - 2):
        outputs, scores = by_plain_hooks(model, image)
        cap = hookviz.capture(model, image, logits=logits)
        assert list(cap) == list(outputs)
        assert all(torch.equal(cap[name].values, outputs[name]) for name in outputs)
        if logits:
            assert cap.logits is not None
            assert torch.equal(cap.logits, scores)


@pytest.mark.parametrize("build", ODD)
def test_nothing_of_the_shared_network_changes(build: type[Odd]) -> None:
    model = as_model(seeded(build))
    before = state(model.network)
    scores = [hookviz.capture(model, image).logits for image in (bright(), bright(), bright())]
    hookviz.run_lens("verify", model, bright())
    hookviz.run_lens("health", model, bright())
    assert str(state(model.network)) == str(before)
    assert len({str(each) for each in scores}) == 1


@pytest.mark.parametrize("build", ODD)
def test_the_seal_is_true(build: type[Odd]) -> None:
    model = as_model(seeded(build))
    verdict = hookviz.run_lens("verify", model, bright()).panels[0]
    assert isinstance(verdict, TextPanel)
    assert verdict.tone == "good", verdict.text
    assert "What is shown of" in verdict.text


def test_a_record_that_writes_have_spoilt_is_found_by_the_seal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purity.Purity, "was_pure", True)  # as though nobody had watched
    monkeypatch.setattr(purity, "is_known_code", lambda _network: True)
    verdict = hookviz.run_lens("verify", as_model(seeded(ClampsData)), bright()).panels[0]
    assert isinstance(verdict, TextPanel)
    assert verdict.tone == "bad"
    assert "conv (Conv2d) puts out something else than what was recorded of it" in verdict.text


class CountsInTheEnvironment(Odd):
    """State outside of the process's Python objects: nobody can take that back."""

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        os.environ["HOOKVIZ_TEST_TOTAL"] = str(int(os.environ["HOOKVIZ_TEST_TOTAL"]) + 1)
        other: Tensor = self.other(images * int(os.environ["HOOKVIZ_TEST_TOTAL"]))
        return activation + other


def test_state_outside_of_the_network_is_told_by_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_TEST_TOTAL", "0")
    model = as_model(seeded(CountsInTheEnvironment))
    verdict = hookviz.run_lens("verify", model, bright()).panels[0]
    assert isinstance(verdict, TextPanel)
    assert verdict.tone == "bad"
    assert "other (Conv2d) puts out something else than what was recorded of it" in verdict.text


class CountsInItsClass(Odd):
    """State of the class, which every copy shares: it is put back after each pass."""

    total = 0

    def odd(self, activation: Tensor, images: Tensor) -> Tensor:
        type(self).total += 1
        other: Tensor = self.other(images * type(self).total)
        return activation + other


def test_state_of_a_class_is_as_it_was_after_each_pass() -> None:
    model = as_model(seeded(CountsInItsClass))
    scores = [hookviz.capture(model, bright()).logits for _ in range(3)]
    assert CountsInItsClass.total == 0
    assert len({str(each) for each in scores}) == 1


def test_what_only_computes_is_known_to() -> None:
    for build in ODD:
        model = as_model(seeded(build))
        hookviz.capture(model, bright())
        # Writes in threads and scripts cannot be seen: captures copy whatever a person's code does.
        unseen = (WritesInAnotherThread, WritesInAScript)
        plain = build in (Odd, WithoutGradients, ReplacedForward, GoesOnWithout, *unseen)
        assert purity.is_pure(model.network) is plain, build.__name__
