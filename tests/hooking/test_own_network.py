"""A person's own network is run itself, and what a look sets on it is taken back."""

import copy
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torchvision.models import resnet18
from torchvision.models.feature_extraction import create_feature_extractor

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import differentiable, private_replica
from hookviz.hooking.own_network import generators, own_network, put_generators_back
from tests.networks import Tiny, as_model, hook_count, random_input, seeded


class Norms(nn.Module):
    """A batch norm and a dropout between two conv layers, and five classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.drop(self.norm(self.conv1(images))))
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


class KeepsNormInEvaluation(Norms):
    def train(self, mode: bool = True) -> "KeepsNormInEvaluation":
        super().train(mode)
        self.norm.eval()
        return self


class RefusesEval(Norms):
    def eval(self) -> "RefusesEval":
        raise RuntimeError("this network is always in training")


class RefusesModes(Norms):
    def train(self, mode: bool = True) -> "RefusesModes":
        raise RuntimeError(f"no mode {mode}")


class EvalTakesArguments(Norms):
    def eval(self, loader: object) -> Tensor:  # type: ignore[override]
        raise NotImplementedError(loader)


def mixed() -> nn.Module:
    network = Norms().eval()
    network.training = network.drop.training = True
    return network


def plainly(network: nn.Module, layer: str, images: Tensor) -> Tensor:
    """What a layer puts out for one image in evaluation mode, by a plain hook on a copy."""
    other = copy.deepcopy(network)
    for module in other.modules():
        module.training = False
    seen: list[Tensor] = []
    other.get_submodule(layer).register_forward_hook(
        lambda _module, _inputs, output: seen.append(output.detach().clone())
    )
    with torch.no_grad():
        other(images)
    return seen[0][0]


def modes(network: nn.Module) -> list[bool]:
    return [module.training for module in network.modules()]


@pytest.mark.parametrize(
    "build",
    [
        *(mixed, KeepsNormInEvaluation, RefusesEval, RefusesModes, EvalTakesArguments),
    ],
)
def test_modes_are_put_back_one_by_one(build: Callable[[], nn.Module]) -> None:
    network = seeded(build)
    before = modes(network)
    found = hookviz.capture(network, random_input(1), "conv2")
    assert modes(network) == before
    assert torch.equal(found["conv2"].values, plainly(network, "conv2", random_input(1)))
    with pytest.raises(hookviz.ModelError):
        hookviz.capture(network, torch.zeros(5, 16, 16), "conv2")
    assert modes(network) == before


@pytest.mark.parametrize("is_training", [False, True])
def test_a_graph_module_has_the_graph_of_its_mode_again(is_training: bool) -> None:
    network = create_feature_extractor(seeded(resnet18).train(), ["layer1"]).train(is_training)
    graph = network.graph
    found = hookviz.capture(network, random_input(1, 32), "layer1.0.conv1")
    assert (network.graph is graph, network.training) == (True, is_training)
    assert set(modes(network)) == {is_training}
    expected = plainly(copy.deepcopy(network).eval(), "layer1.0.conv1", random_input(1, 32))
    assert torch.equal(found["layer1.0.conv1"].values, expected)


class Writes(nn.Module):
    """It writes into its buffers in every pass, in a way of its own."""

    def __init__(self, write: Callable[["Writes"], object]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.seen: Tensor
        self.register_buffer("seen", torch.tensor([1.0, float("nan")]))
        self.later: Tensor | None
        self.register_buffer("later", None)
        self.write = write

    def forward(self, images: Tensor) -> Tensor:
        self.write(self)
        maps: Tensor = self.conv(images)
        return maps * self.seen[0]


WRITES: dict[str, Callable[[Writes], object]] = {
    "in place": lambda network: network.seen.add_(1),
    "through .data": lambda network: network.seen.data.add_(1),
    "through NumPy": lambda network: network.seen.numpy().__iadd__(1),
    "a NaN": lambda network: network.seen.fill_(float("nan")),
    "another size": lambda network: network.seen.resize_(5),
    "by assignment": lambda network: setattr(network, "seen", network.seen + 1),
    "where there was none": lambda network: setattr(network, "later", torch.ones(3)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_buffers_are_put_back(write: Callable[[Writes], object]) -> None:
    network = seeded(lambda: Writes(write))
    buffer = network.seen
    for _ in range(2):
        hookviz.capture(network, random_input(1), "conv")
        assert network.seen is buffer
        assert torch.equal(buffer.nan_to_num(7.0), torch.tensor([1.0, 7.0]))
        assert network.later is None
    norms = seeded(Norms).train()
    before = copy.deepcopy(norms.state_dict())
    for size in (16, 24):
        hookviz.capture(hookviz.wrap(norms, train=True), random_input(1, size))
        states = norms.state_dict()
        assert all(torch.equal(before[name], each) for name, each in states.items())
    assert norms.training


def test_random_generators_are_put_back() -> None:
    class Draws(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            maps: Tensor = self.conv(images * (torch.rand(()) + random.random() + np.random.rand()))
            return maps

    network, before = seeded(Draws), generators()
    first, second = (hookviz.capture(network, random_input(1)) for _ in range(2))
    assert torch.equal(first["conv"].values, second["conv"].values)
    assert generators() == before
    drawn = []
    for _ in range(2):
        put_generators_back(before)
        drawn.append((torch.rand(3).tolist(), random.random(), float(np.random.rand())))
    assert drawn[0] == drawn[1]
    assert generators() != before
    put_generators_back(before)
    assert generators() == before


def test_many_threads_see_their_own_images_in_one_network() -> None:
    """A hook on the very module fires for every thread: without the lock it sees others' images."""
    network = seeded(Tiny)
    images, layers = [random_input(seed) for seed in range(8)], ["conv1", "conv2"]
    expected = [[plainly(network, layer, image) for layer in layers] for image in images]

    def capture_often(at: int) -> None:
        for number in range(50):
            which = (at + number) % 2
            found = hookviz.capture(network, images[at], layers[which])
            assert list(found) == [layers[which]]
            assert torch.equal(found[layers[which]].values, expected[at][which])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(capture_often, range(8)))
    assert hook_count(network) == 0
    assert all(modes(network))


def test_blocks_within_each_other_hold_one_network() -> None:
    network = seeded(Norms).train()
    model = hookviz.wrap(network)
    trains = hookviz.wrap(network, train=True)
    of_catalog = hookviz.load_model("shapesnet")
    with private_replica(of_catalog) as lent:
        assert lent is not of_catalog.network
    with private_replica(model) as lent, suppress(hooks.StopForward):
        assert lent is network
    with own_network(model) as outer:
        assert outer is network
        assert not any(modes(network))
        with own_network(model) as inner:
            assert inner is network
            assert not any(modes(network))
        assert not any(modes(network))
        with own_network(trains):
            hookviz.capture(trains, random_input(1))
        assert not any(modes(network))
    assert all(modes(network))


class Ends(nn.Module):
    """It draws, writes and then raises, where it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.passes: Tensor
        self.register_buffer("passes", torch.zeros(()))
        self.error: BaseException | None = None

    def forward(self, images: Tensor) -> Tensor:
        self.passes.add_(1)
        torch.rand(3)
        maps: Tensor = self.conv(images)
        if self.error is not None:
            raise self.error
        return maps


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(2)], ids=repr)
def test_everything_is_put_back_where_a_pass_ends_early(error: BaseException) -> None:
    network = seeded(Ends)
    hookviz.capture(network, random_input(1))

    def end(share: float) -> None:
        raise InterruptedError(share)

    with pytest.raises(InterruptedError):
        hookviz.capture(network, random_input(1), progress=end)
    state, network.error = torch.get_rng_state(), error
    kind = hookviz.ModelError if isinstance(error, Exception) else type(error)
    with pytest.raises(kind):
        hookviz.capture(network, random_input(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert (float(network.passes), network.training, hook_count(network)) == (0.0, True, 0)
    network.error = None
    done: list[object] = []
    other = threading.Thread(target=lambda: done.append(hookviz.capture(network, random_input(2))))
    other.start()
    other.join(20)
    assert len(done) == 1  # the lock is free


def test_a_persons_own_hooks_fire_and_stay() -> None:
    network = seeded(Tiny)
    seen: list[str] = []
    network.conv1.register_forward_hook(lambda *_: seen.append("the network's"))
    everywhere = register_module_forward_hook(
        lambda module, *_: seen.append("everybody's") if module is network else None
    )
    try:
        model = as_model(network)
        hookviz.capture(model, random_input(1))
        seen.clear()
        hookviz.capture(model, random_input(1))
    finally:
        everywhere.remove()
    assert seen == ["the network's", "everybody's"]  # once each, as of one call
    assert hook_count(network) == 1


def test_the_next_capture_sees_a_training_step() -> None:
    """With a session's cache, and without wrapping again."""
    network = seeded(Norms).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    model, cache, image = hookviz.wrap(network), Budget(1 << 20).cache(1 << 20), random_input(1)
    before: Tensor | None = None
    for _ in range(3):
        for given in (network, model):
            found = hookviz.capture(given, image, "conv2", cache=cache)["conv2"].values
            assert torch.equal(found, plainly(network, "conv2", image))
            assert before is None or not torch.equal(found, before)
            again = hookviz.capture(given, image, "conv2", cache=cache)
            assert again.forward_passes == 0
        before = found
        network(random_input(2).repeat(4, 1, 1, 1)).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()


def test_a_write_past_the_counters_is_not_seen_by_a_cache() -> None:
    network, cache, image = seeded(Tiny), Budget(1 << 20).cache(1 << 20), random_input(1)
    before = hookviz.capture(network, image, "conv1", cache=cache)["conv1"].values
    network.conv1.weight.data.mul_(2)
    kept = hookviz.capture(network, image, "conv1", cache=cache)
    assert torch.equal(kept["conv1"].values, before)
    now = hookviz.capture(network, image, "conv1")["conv1"].values
    assert torch.equal(now, plainly(network, "conv1", image))
    assert not torch.equal(now, before)


@pytest.mark.parametrize("trainable", [False, True])
def test_a_backward_pass_reaches_no_parameter_of_the_network(trainable: bool) -> None:
    norms = seeded(Norms).train()
    norms(random_input(1)).square().mean().backward()
    before = [
        (each, each._version, each.requires_grad, each.grad, each.grad.clone())
        for each in norms.parameters()
        if each.grad is not None
    ]
    hookviz.capture(norms, random_input(2))
    hookviz.run_lens("grad-cam", norms, random_input(2))
    for each, (own, version, needs, grad, values) in zip(norms.parameters(), before, strict=True):
        assert each is own
        assert (each._version, each.requires_grad) == (version, needs)
        assert each.grad is grad
        assert torch.equal(grad, values)
    network = seeded(Tiny)
    model = as_model(network)
    parameters = dict(network.named_parameters())
    with differentiable(model, trainable=trainable) as lent:
        assert lent is network
        works_in_place = network.relu.inplace
        given = random_input(0).requires_grad_()
        wanted = [given, *lent.parameters()] if trainable else [given]
        found = torch.autograd.grad(lent(given).sum(), wanted)
        assert all(part is not None for part in found)
        assert trainable is not (lent.conv1.weight is parameters["conv1.weight"])
    assert (works_in_place, network.relu.inplace) == (False, True)
    assert all(parameters[name] is each for name, each in network.named_parameters())
    assert all(each.grad is None and each.requires_grad for each in network.parameters())


def test_a_part_that_is_compiled_is_looked_into() -> None:
    programs: list[object] = []

    def backend(graph: Any, _inputs: object) -> Any:
        programs.append(graph)
        return graph.forward

    network, image = seeded(lambda: nn.Sequential(Norms(), nn.ReLU())).eval(), random_input(1)
    expected = plainly(network, "0.conv2", image)
    part: Any = torch.compile(network[0], backend=backend)
    network[0] = part
    for given in (network, nn.DataParallel(network)):
        found = hookviz.capture(given, image, "0.conv2")
        assert torch.equal(found["0.conv2"].values, expected)
    assert programs == []


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_network_that_ends_python_is_an_error_of_its_own(error: type[BaseException]) -> None:
    """In a thread of the page, where nobody presses Ctrl-C; else the page would run on silently."""

    class Ends(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise error

    network = nn.Sequential(nn.Conv2d(3, 4, 3), Ends())

    def look() -> None:
        hookviz.capture(network, torch.rand(1, 3, 8, 8), ["0", "1"])

    with ThreadPoolExecutor(1) as pool, pytest.raises(hookviz.ModelError, match="ends Python"):
        pool.submit(look).result()


class Loops(nn.Module):
    """Runs a convolution as often as an attribute says, and lays its output as another says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 3, 3, padding=1), nn.Identity()
        self.times, self.is_last = 1, False

    def forward(self, images: Tensor) -> Tensor:
        for _ in range(self.times):
            images = self.conv(images)
        laid: Tensor = self.last(images.permute(0, 2, 3, 1) if self.is_last else images)
        return laid.flatten(1)


@pytest.mark.parametrize("slug", ["grad-cam", "occlusion", "channels-that-matter"])
def test_what_a_pass_moves_is_not_looked_for_again(slug: str) -> None:
    """As many passes as without it, as no trace is forgotten for it."""
    passes = []
    for is_counting in (False, True):
        network, counted = seeded(Tiny).eval(), list[None]()

        def count(own: Any, _inputs: Any, counted: Any = counted, step: int = is_counting) -> None:
            counted.append(None)
            own.calls = getattr(own, "calls", 0) + step

        network.register_forward_pre_hook(count)
        options: dict[str, Any] = {"window": 8} if slug == "occlusion" else {"target": 1}
        for _ in range(2):
            hookviz.run_lens(slug, network, random_input(0), layer="conv2", **options)
        passes.append(len(counted))
    assert passes[0] == passes[1]


def test_an_attribute_that_is_set_is_noticed() -> None:
    network, image = seeded(Loops).eval(), random_input(0)
    cache = Budget(10**7).cache(10**7)
    before = hookviz.capture(network, image, ["conv", "last"], logits=False, cache=cache)
    network.times, network.is_last = 3, True
    for kept in (None, cache):
        cap = hookviz.capture(network, image, ["conv", "last"], logits=False, cache=kept)
        assert list(cap) == ["conv", "conv#1", "conv#2", "last"]
        assert cap["last"].values.equal(cap["conv#2"].values)  # as (C, H, W) both
        assert not cap["last"].values.equal(before["last"].values)
