"""Pictures go to a layer as if each were alone, on as few copies of the network as will do."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz.hooking import replicas
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.robustness import NONE
from hookviz.synthesis.settings import SynthesisMethod
from tests.networks import as_model, seeded
from tests.odd_batches import ODD, REMEMBERING, Counter, Odd
from tests.synthesis.networks import SIDE, normalised

STILL = SynthesisMethod(size=SIDE, robustness=NONE, penalty="L2", strength=30.0)
SHORT = SynthesisMethod(size=32)


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
    optimization = Optimization(model, [Objective.of_channel("conv2", 1)], STILL)
    pictures = [optimization.tensor()]
    optimization.run(3, lambda now: pictures.append(now.tensor()))
    for picture, (value,) in zip(pictures, optimization.history, strict=False):
        fresh = copy.deepcopy(network)
        maps = fresh.between(fresh.conv1(normalised(picture, model)).relu())
        assert value == pytest.approx(float(fresh.conv2(maps)[0, 1].mean()), rel=1e-4)


@pytest.mark.parametrize(("kind", "copies"), [(Odd, 1), (Counter, 5)])
def test_a_network_that_only_computes_is_copied_once_for_all_steps(
    monkeypatch: pytest.MonkeyPatch, kind: type[Odd], copies: int
) -> None:
    optimization = Optimization(as_model(seeded(kind)), [Objective.of_channel("conv2", 1)], SHORT)
    replicas_made: list[nn.Module] = []
    copied = replicas.for_gradients

    def counted(network: nn.Module) -> nn.Module:
        replicas_made.append(copied(network))
        return replicas_made[-1]

    monkeypatch.setattr(replicas, "for_gradients", counted)
    optimization.run(5)
    assert len(replicas_made) == copies


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
