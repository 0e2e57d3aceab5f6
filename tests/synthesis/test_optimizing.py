"""Pictures become the known optimum, each as if alone, and leave no trace on the network."""

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.hooking.channels_last import ROUNDING
from hookviz.hooking.network_state import share
from hookviz.machine.memory import Memory
from hookviz.models.shapesnet import ShapesNet
from hookviz.synthesis import optimizing
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.optimizing import (
    LayerPasses,
    Optimization,
    OptimizationState,
    diversity_penalty,
    run_resumed,
)
from hookviz.synthesis.settings import NONE, MaximizationConfig
from hookviz.types import Model
from tests.networks import Tiny, as_model, hook_count, random_input, seeded
from tests.odd_batches import MIXING, Averages, Momentum, Odd
from tests.synthesis.networks import SIDE, Filter, correlation, gabor, model_of, normalised
from tests.wide_networks import Wide, WideViewed

STILL = MaximizationConfig(size=SIDE, robustness=NONE, penalty="L2", strength=30.0)
SHORT = MaximizationConfig(size=32)


@pytest.mark.parametrize("kind", MIXING)
def test_pictures_made_together_are_those_made_alone_whatever_the_network_does(
    kind: type[Odd],
) -> None:
    model = as_model(seeded(kind))
    goals = [Objective.of_channel("conv2", channel) for channel in (3, 0, 2)]
    together = Optimization(model, goals, SHORT)
    together.run(4)
    for number, goal in enumerate(goals):
        alone = Optimization(model, [goal], SHORT)
        alone.run(4)
        ours, theirs = np.array(together.history)[:, number], np.array(alone.history)[:, 0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(alone.tensor()[0], together.tensor()[number], rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", [Averages, Momentum])
@torch.no_grad()
def test_each_step_finds_the_buffers_as_they_were(kind: type[Odd]) -> None:
    network = seeded(kind)
    model = as_model(network)
    optimization = Optimization(model, [Objective.of_channel("conv2", 1)], STILL)
    pictures = [optimization.tensor()]
    optimization.run(3, lambda now: pictures.append(now.tensor()))
    for picture, (value,) in zip(pictures, optimization.history, strict=False):
        fresh = copy.deepcopy(network)
        maps = fresh.between(fresh.conv1(normalised(picture, model)).relu())
        assert value == pytest.approx(float(fresh.conv2(maps)[0, 1].mean()), rel=1e-4)


def test_between_steps_a_network_of_ones_own_is_its_owners() -> None:
    network = seeded(Odd).train()
    weights = [*network.parameters()]

    def after(_now: Optimization) -> None:
        assert network.training
        assert all(each.requires_grad and each.grad is None for each in weights)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(hookviz.capture, network, random_input(0), "conv1").result(timeout=60)

    Optimization(as_model(network), [Objective.of_channel("conv2", 1)], SHORT).run(2, after)


class Viewing(nn.Module):
    """Looks at its maps in a way that tensors with channels last refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.last = nn.Conv1d(4, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        scores: Tensor = self.last(maps.view(len(maps), 4, -1)).mean(-1)
        return scores


def test_a_network_that_needs_its_channels_first_gets_them_so() -> None:
    optimization = Optimization(as_model(seeded(Viewing)), [Objective.of_class(1)], SHORT)
    optimization.run(4)
    assert optimization.history[-1][0] > optimization.history[0][0]


def test_a_large_networks_weights_have_channels_last_in_its_passes_and_no_where_else() -> None:
    network, image = seeded(Wide).eval(), random_input(3, SIDE)
    model = as_model(share(network.requires_grad_(requires_grad=False)))
    before = {name: each.stride() for name, each in model.network.named_parameters()}
    passes = LayerPasses(model, ["conv3", None])
    with passes.on_network() as outputs, torch.no_grad():
        maps, scores = outputs(image)
        expected = network(image)
    assert not passes._fast.network.get_parameter("conv3.weight").is_contiguous()
    assert (scores[:, :, 0, 0] - expected).abs().max() <= ROUNDING * expected.abs().max()
    exact = hookviz.capture(model, image, "conv3")["conv3"].values
    assert (maps[0] - exact).abs().max() <= ROUNDING * exact.abs().max()
    assert {name: each.stride() for name, each in model.network.named_parameters()} == before
    assert "channels last" in passes.how


def test_a_large_network_that_cannot_take_that_gets_all_of_it_plainly() -> None:
    network, image = seeded(WideViewed).eval(), random_input(3, SIDE)
    model = as_model(share(network.requires_grad_(requires_grad=False)))
    passes = LayerPasses(model, [None])
    for _turn in range(2):
        with passes.on_network() as outputs, torch.no_grad():
            for _pass in range(2):
                assert torch.equal(outputs(image)[0][:, :, 0, 0], network(image))
    assert passes.how == ""


SECOND = Path(__file__).with_name("second_shapesnet.safetensors")
"""ShapesNet from another seed, on other drawings, by scripts/train_bundled.py; halves."""


def optimized(model: Model, objective: Objective, method: MaximizationConfig, steps: int) -> Tensor:
    optimization = Optimization(model, [objective], method)
    optimization.run(steps)
    return optimization.tensor()[0]


def test_a_linear_filters_picture_is_its_kernel() -> None:
    picture = optimized(model_of(seeded(Filter)), Objective.of_channel("conv", 0), STILL, 200)
    assert correlation(picture, gabor(0.3)) >= 0.95


@pytest.mark.parametrize("space", ["Fourier", "MACO"])
def test_a_classs_picture_is_of_that_class_to_another_network_too(space: str) -> None:
    model = hookviz.load_model("shapesnet")
    names = ("star", "ring", "flower")
    targets = [model.categories.index(name) for name in names]
    optimization = Optimization(
        model,
        [Objective.of_class(target) for target in targets],
        MaximizationConfig(96, space=space),
    )
    optimization.run(80)
    judge = ShapesNet().eval()
    halves = load_file(SECOND)
    judge.load_state_dict({name: values.float() for name, values in halves.items()})
    inputs = normalised(optimization.tensor(), model)
    with torch.no_grad():
        own, theirs = model.network(inputs).argmax(1), judge(inputs).argmax(1)
    assert own.tolist() == targets
    assert theirs.tolist() == targets


def test_values_are_those_of_a_plain_pass() -> None:
    network = seeded(Tiny)
    model = as_model(network)
    optimization = Optimization(
        model, [Objective.of_channel("conv2", 3), Objective.of_channel("conv2", 1)], SHORT
    )
    optimization.run(5)
    with torch.no_grad():
        inputs = normalised(optimization.tensor(), model)
        maps = network.conv2(network.conv1(inputs).relu())
    expected = [float(maps[0, 3].mean()), float(maps[1, 1].mean())]
    np.testing.assert_allclose(optimization.measured(), expected, rtol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        SHORT,
        MaximizationConfig(32, space="MACO", seed=5),
        MaximizationConfig(32, penalty="total variation"),
    ],
)
def test_stopped_and_gone_on_with_it_is_the_same_to_the_bit(method: MaximizationConfig) -> None:
    model, goals = as_model(seeded(Tiny)), [Objective.of_channel("conv2", 2)]
    at_once = Optimization(model, goals, method)
    at_once.run(9)
    first = Optimization(model, goals, method)
    first.run(4)
    second = Optimization(model, goals, method)
    second.restore(first.state())
    first.run(7)  # what was saved does not move with it
    second.run(9)
    assert torch.equal(at_once.tensor(), second.tensor())
    assert at_once.history == second.history
    other = Optimization(model, goals, MaximizationConfig(32, seed=1))
    other.run(9)
    assert not torch.equal(at_once.tensor(), other.tensor())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", [1, 3])
def test_stopping_leaves_no_hook_and_no_gradient(error: type[BaseException], at: int) -> None:
    model = as_model(seeded(Tiny))
    versions = [parameter._version for parameter in model.network.parameters()]
    optimization = Optimization(model, [Objective.of_channel("conv2", 0)], SHORT)

    def stop(now: Optimization) -> None:
        if now.steps == at:
            raise error

    with pytest.raises(error):
        optimization.run(9, stop)
    assert optimization.steps == at
    assert hook_count(model.network) == 0
    assert all(parameter.grad is None for parameter in model.network.parameters())
    assert [parameter._version for parameter in model.network.parameters()] == versions
    optimization.run(9)
    whole = Optimization(model, optimization.goals, SHORT)
    whole.run(9)
    assert torch.equal(whole.tensor(), optimization.tensor())


@pytest.mark.parametrize("penalty", ["total variation", "L2"])
def test_a_penalty_does_what_it_is_called(penalty: str) -> None:
    def cost(picture: Tensor) -> float:
        if penalty == "L2":
            return float((picture - 0.5).square().mean())
        return float(picture.diff(dim=-1).abs().mean() + picture.diff(dim=-2).abs().mean())

    model, goal = as_model(seeded(Tiny)), Objective.of_channel("conv2", 0)
    free, held = (
        optimized(model, goal, MaximizationConfig(32, penalty=each, strength=5.0), 40)
        for each in ("none", penalty)
    )
    assert cost(held) < cost(free) / 2


def test_diverse_pictures_are_less_alike() -> None:
    def gram_cosine(diversity: float) -> float:
        model = hookviz.load_model("shapesnet")
        goals: list[Any] = [Objective.of_channel("stage2.second.conv", 3)] * 2
        method = MaximizationConfig(48, diversity=diversity)
        optimization = Optimization(model, goals, method, seeds=(0, 1))
        optimization.run(40)
        captures = [
            hookviz.capture(model, Image.fromarray(image), "stage2.second.conv", size=48)[
                "stage2.second.conv"
            ]
            for image in optimization.pictures()
        ]
        flat = [each.values.flatten(1) for each in captures]
        one, other = ((each @ each.T).flatten() for each in flat)
        return float(torch.cosine_similarity(one, other, dim=0))

    assert gram_cosine(30.0) < gram_cosine(0.0)


def test_what_takes_too_much_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Memory(200_000_000, lambda: 0)
    monkeypatch.setattr(optimizing, "own_memory", lambda: small)
    model = as_model(seeded(Tiny))
    assert (
        Optimization(model, [Objective.of_class(0)], MaximizationConfig(512)).nbytes < 100_000_000
    )
    with pytest.raises(hookviz.ModelError, match=r"64 pictures of 512×512 take about .* Fewer"):
        Optimization(model, [Objective.of_class(0)] * 64, MaximizationConfig(512))


def test_no_pictures_are_refused() -> None:
    with pytest.raises(hookviz.SettingError, match="0 pictures"):
        Optimization(as_model(seeded(Tiny)), [], SHORT)


def test_the_penalty_is_the_mean_cosine_of_gram_matrices() -> None:
    output = torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    flat = output.flatten(2).double().numpy()
    grams = [(maps @ maps.T).ravel() for maps in flat]
    total = sum(
        one @ other / ((one @ one) ** 0.5 * (other @ other) ** 0.5)
        for i, one in enumerate(grams)
        for j, other in enumerate(grams)
        if i != j
    )
    assert float(diversity_penalty(output)) == pytest.approx(total / 2, rel=1e-4)


def optimization(model: Model) -> Optimization:
    return Optimization(model, [Objective.of_channel("conv2", 0)], MaximizationConfig(size=32))


def test_what_a_session_keeps_is_small_and_ends_with_it(tiny: Model) -> None:
    budget = Budget(1_000_000)
    session = budget.cache(1_000_000)
    run_resumed(optimization(tiny), 3, session, "key", lambda _: None)
    assert 0 < budget.used < 100_000
    counted: list[int] = []
    run_resumed(optimization(tiny), 5, session, "key", lambda now: counted.append(now.steps))
    assert counted == [4, 5]
    session.clear()
    assert budget.used == 0


def test_nothing_is_kept_where_nothing_was_done(tiny: Model) -> None:
    budget = Budget(1_000_000)
    session = budget.cache(1_000_000)

    def stop(_now: Optimization) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_resumed(optimization(tiny), 3, session, "key", stop)
    kept: OptimizationState | None = session.get("key")
    assert kept is not None
    assert kept.steps == 1
    run_resumed(optimization(tiny), 2, None, "key", lambda _: None)
