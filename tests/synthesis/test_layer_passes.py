"""Pictures go to a layer as if each were alone, and the network is free between two steps."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking.channels_last import ROUNDING
from hookviz.hooking.network_state import share
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.layer_passes import LayerPasses
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.settings import NONE, SynthesisMethod
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import MIXING, Averages, Momentum, Odd
from tests.synthesis.networks import SIDE, normalised
from tests.wide_networks import Wide, WideViewed

STILL = SynthesisMethod(size=SIDE, robustness=NONE, penalty="L2", strength=30.0)
SHORT = SynthesisMethod(size=32)


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
