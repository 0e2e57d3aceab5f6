"""Pictures climb to what is known to be best, whether stopped or not, and leave no trace."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

import hookviz
from hookviz.hooking import replicas
from hookviz.machine.memory import Memory
from hookviz.models.shapesnet import ShapesNet
from hookviz.synthesis import optimizing
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.method import SynthesisMethod
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.robustness import NONE
from hookviz.types import Model
from tests.networks import Tiny, as_model, hook_count, seeded
from tests.odd_batches import ODD, REMEMBERING, Counter, Odd
from tests.synthesis.networks import SIDE, Filter, Pair, correlation, gabor, model_of, normalised

STILL = SynthesisMethod(size=SIDE, robustness=NONE, penalty="L2", strength=30.0)
SHORT = SynthesisMethod(size=32)
SECOND = Path(__file__).with_name("second_shapesnet.safetensors")
"""ShapesNet from another seed, on other drawings, by scripts/train_bundled.py; halves."""


def climbed(model: Model, objective: Objective, method: SynthesisMethod, steps: int) -> Tensor:
    climb = Optimization(model, [objective], method)
    climb.run(steps)
    return climb.tensor()[0]


def test_a_linear_filters_picture_is_its_kernel() -> None:
    picture = climbed(model_of(seeded(Filter)), Objective.of_channel("conv", 0), STILL, 200)
    assert correlation(picture, gabor(0.3)) >= 0.95


def test_what_silences_a_linear_filter_is_its_negative() -> None:
    objective = Objective("conv", ((0, 1.0),), rises=False)
    picture = climbed(model_of(seeded(Filter)), objective, STILL, 200)
    assert correlation(picture, gabor(0.3)) <= -0.95


def test_a_quadrature_pairs_picture_is_its_wave_in_some_phase() -> None:
    picture = climbed(model_of(seeded(Pair)), Objective.of_channel("amplitude", 0), STILL, 200)
    waves = torch.stack([gabor(0.0), gabor(math.pi / 2)]).flatten(1).double()
    about = picture.flatten().double() - 0.5
    within = torch.linalg.lstsq(waves.T, about[:, None]).solution
    assert correlation(waves.T @ within, about) >= 0.95


@pytest.mark.parametrize("space", ["Fourier", "MACO"])
def test_a_classs_picture_is_of_that_class_to_another_network_too(space: str) -> None:
    model = hookviz.load_model("shapesnet")
    names = ("star", "ring", "flower")
    targets = [model.categories.index(name) for name in names]
    climb = Optimization(
        model, [Objective.of_class(target) for target in targets], SynthesisMethod(96, space=space)
    )
    climb.run(80)
    judge = ShapesNet().eval()
    halves = load_file(SECOND)
    judge.load_state_dict({name: values.float() for name, values in halves.items()})
    inputs = normalised(climb.tensor(), model)
    with torch.no_grad():
        own, theirs = model.network(inputs).argmax(1), judge(inputs).argmax(1)
    assert own.tolist() == targets
    assert theirs.tolist() == targets


def test_values_are_those_of_a_plain_pass() -> None:
    network = seeded(Tiny)
    model = as_model(network)
    climb = Optimization(
        model, [Objective.of_channel("conv2", 3), Objective.of_channel("conv2", 1)], SHORT
    )
    climb.run(5)
    with torch.no_grad():
        inputs = normalised(climb.tensor(), model)
        maps = network.conv2(network.conv1(inputs).relu())
    expected = [float(maps[0, 3].mean()), float(maps[1, 1].mean())]
    np.testing.assert_allclose(climb.measured(), expected, rtol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        SHORT,
        SynthesisMethod(32, space="MACO", seed=5),
        SynthesisMethod(32, penalty="total variation"),
    ],
)
def test_stopped_and_gone_on_with_it_is_the_same_to_the_bit(method: SynthesisMethod) -> None:
    model, goals = as_model(seeded(Tiny)), [Objective.of_channel("conv2", 2)]
    at_once = Optimization(model, goals, method)
    at_once.run(9)
    first = Optimization(model, goals, method)
    first.run(4)
    second = Optimization(model, goals, method)
    second.restore(first.saved())
    first.run(7)  # what was saved does not move with it
    second.run(9)
    assert torch.equal(at_once.tensor(), second.tensor())
    assert at_once.history == second.history
    other = Optimization(model, goals, SynthesisMethod(32, seed=1))
    other.run(9)
    assert not torch.equal(at_once.tensor(), other.tensor())


def test_pictures_that_are_made_together_are_those_made_alone() -> None:
    model = as_model(seeded(Tiny))
    goals = [Objective.of_channel("conv2", channel) for channel in (4, 0, 2)]
    together = Optimization(model, goals, SHORT)
    together.run(12)
    for number, goal in enumerate(goals):
        alone = Optimization(model, [goal], SHORT)
        alone.run(12)
        torch.testing.assert_close(alone.tensor()[0], together.tensor()[number], rtol=0, atol=0.02)


@pytest.mark.parametrize("kind", ODD)
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


@pytest.mark.parametrize("kind", REMEMBERING)
@torch.no_grad()
def test_each_step_is_a_pass_of_a_fresh_network(kind: type[Odd]) -> None:
    network = seeded(kind)
    model = as_model(network)
    climb = Optimization(model, [Objective.of_channel("conv2", 1)], STILL)
    pictures = [climb.tensor()]
    climb.run(3, lambda now: pictures.append(now.tensor()))
    for picture, (value,) in zip(pictures, climb.history, strict=False):
        fresh = copy.deepcopy(network)
        maps = fresh.between(fresh.conv1(normalised(picture, model)).relu())
        assert value == pytest.approx(float(fresh.conv2(maps)[0, 1].mean()), rel=1e-4)


@pytest.mark.parametrize(("kind", "copies"), [(Odd, 1), (Counter, 5)])
def test_a_network_that_only_computes_is_copied_once_for_all_steps(
    monkeypatch: pytest.MonkeyPatch, kind: type[Odd], copies: int
) -> None:
    climb = Optimization(as_model(seeded(kind)), [Objective.of_channel("conv2", 1)], SHORT)
    made: list[nn.Module] = []
    copied = replicas.for_gradients

    def counted(network: nn.Module) -> nn.Module:
        made.append(copied(network))
        return made[-1]

    monkeypatch.setattr(replicas, "for_gradients", counted)
    climb.run(5)
    assert len(made) == copies


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", [1, 3])
def test_stopping_leaves_no_hook_and_no_gradient(error: type[BaseException], at: int) -> None:
    model = as_model(seeded(Tiny))
    versions = [parameter._version for parameter in model.network.parameters()]
    climb = Optimization(model, [Objective.of_channel("conv2", 0)], SHORT)

    def stop(now: Optimization) -> None:
        if now.steps == at:
            raise error

    with pytest.raises(error):
        climb.run(9, stop)
    assert climb.steps == at
    assert hook_count(model.network) == 0
    assert all(parameter.grad is None for parameter in model.network.parameters())
    assert [parameter._version for parameter in model.network.parameters()] == versions
    climb.run(9)
    whole = Optimization(model, climb.goals, SHORT)
    whole.run(9)
    assert torch.equal(whole.tensor(), climb.tensor())


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
    climb = Optimization(as_model(seeded(Viewing)), [Objective.of_class(1)], SHORT)
    climb.run(4)
    assert climb.history[-1][0] > climb.history[0][0]


@pytest.mark.parametrize("penalty", ["total variation", "L2"])
def test_a_penalty_does_what_it_is_called(penalty: str) -> None:
    def cost(picture: Tensor) -> float:
        if penalty == "L2":
            return float((picture - 0.5).square().mean())
        return float(picture.diff(dim=-1).abs().mean() + picture.diff(dim=-2).abs().mean())

    model, goal = as_model(seeded(Tiny)), Objective.of_channel("conv2", 0)
    free, held = (
        climbed(model, goal, SynthesisMethod(32, penalty=each, strength=5.0), 40)
        for each in ("none", penalty)
    )
    assert cost(held) < cost(free) / 2


def test_diverse_pictures_are_less_alike() -> None:
    def alike(diversity: float) -> float:
        model = hookviz.load_model("shapesnet")
        goals: list[Any] = [Objective.of_channel("stage2.second.conv", 3)] * 2
        method = SynthesisMethod(48, diversity=diversity)
        climb = Optimization(model, goals, method, seeds=(0, 1))
        climb.run(40)
        captures = [
            hookviz.capture(model, Image.fromarray(image), "stage2.second.conv", size=48)[
                "stage2.second.conv"
            ]
            for image in climb.pictures()
        ]
        flat = [each.values.flatten(1) for each in captures]
        one, other = ((each @ each.T).flatten() for each in flat)
        return float(torch.cosine_similarity(one, other, dim=0))

    assert alike(30.0) < alike(0.0)


def test_what_takes_too_much_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Memory(200_000_000, lambda: 0)
    monkeypatch.setattr(optimizing, "own_memory", lambda: small)
    model = as_model(seeded(Tiny))
    assert Optimization(model, [Objective.of_class(0)], SynthesisMethod(512)).nbytes < 100_000_000
    with pytest.raises(hookviz.ModelError, match=r"64 pictures of 512×512 take about .* Fewer"):
        Optimization(model, [Objective.of_class(0)] * 64, SynthesisMethod(512))


def test_pictures_of_two_layers_or_of_none_are_refused() -> None:
    model = as_model(seeded(Tiny))
    with pytest.raises(hookviz.SettingError, match="one layer"):
        Optimization(model, [Objective.of_channel("conv1", 0), Objective.of_class(0)], SHORT)
    with pytest.raises(hookviz.SettingError, match="0 pictures"):
        Optimization(model, [], SHORT)
