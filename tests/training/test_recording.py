import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models import resnet18

import hookviz
from tests.networks import Tiny, hook_count, random_input, seeded

LABEL = torch.tensor([2])


@pytest.fixture
def network() -> Tiny:
    return seeded(Tiny).train()


def train(network: nn.Module, steps: int, *, momentum: float = 0.9, side: int = 16) -> None:
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=momentum)
    for seed in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(random_input(seed, side)), LABEL).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


@pytest.mark.parametrize("every", [1, 2])
def test_training_is_the_same_to_the_last_bit(every: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = resnet18(weights=None, num_classes=5).eval()
        network.fc = nn.Sequential(nn.Dropout(0.5).train(), network.fc)
        other = copy.deepcopy(network)
        torch.manual_seed(1)
        with hookviz.record(network, every=every) as log:
            train(network, 3, side=32)
        torch.manual_seed(1)
        train(other, 3, side=32)
    assert {row.step for row in log.rows} == set(range(0, 3, every))
    assert len({row.layer for row in log.rows}) == 53
    for ours, theirs in zip(
        network.state_dict().values(), other.state_dict().values(), strict=True
    ):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.equal(ours.grad, theirs.grad)
    assert hook_count(network) == 0
    assert not any(parameter._backward_hooks for parameter in network.parameters())


def test_the_numbers_are_those_of_a_loop_by_hand(network: Tiny) -> None:
    other = copy.deepcopy(network)
    with hookviz.record(network, layers=["conv2", "relu"]) as log:
        train(network, 2)
    optimiser = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    rows = {(row.step, row.layer): row for row in log.rows}
    assert len(rows) == 4
    for step in range(2):
        optimiser.zero_grad()
        a = other.conv1(random_input(step)).relu()
        b = other.conv2(a)
        c = b.relu()
        nn.functional.cross_entropy(other.head(c.mean((2, 3))), LABEL).backward()  # type: ignore[no-untyped-call]
        before = torch.cat([each.detach().flatten() for each in other.conv2.parameters()])
        slopes = torch.cat([each.grad.flatten() for each in other.conv2.parameters()])  # type: ignore[union-attr]
        optimiser.step()
        after = torch.cat([each.detach().flatten() for each in other.conv2.parameters()])
        conv, relu = rows[step, "conv2"], rows[step, "relu"]
        assert conv.gradient_norm == pytest.approx(slopes.norm().item(), rel=1e-5)
        assert conv.weight_norm == pytest.approx(before.norm().item(), rel=1e-5)
        ratio = (after - before).norm() / before.norm()
        assert conv.update_ratio == pytest.approx(ratio.item(), rel=1e-4)
        assert conv.mean == pytest.approx(b.mean().item(), rel=1e-4)
        assert conv.deviation == pytest.approx(b.std(correction=0).item(), rel=1e-4)
        both = torch.cat([a.flatten(), c.flatten()])
        assert relu.mean == pytest.approx(both.mean().item(), rel=1e-4)
        assert relu.deviation == pytest.approx(both.std(correction=0).item(), rel=1e-4)
        assert (relu.gradient_norm, relu.weight_norm, relu.update_ratio) == (None, None, None)


def test_dead_units_are_those_that_are_zero_for_every_image() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU())
    conv = network[0]
    assert isinstance(conv, nn.Conv2d)
    with torch.no_grad():
        conv.weight.fill_(1)
        conv.bias.copy_(torch.tensor([0.0, -3.0, -30.0, -40.0]))  # type: ignore[union-attr]
    images = torch.tensor([1.0, 5.0]).reshape(2, 1, 1, 1)
    with hookviz.record(network) as log:
        network(images).sum().backward()
    assert [row.dead for row in log.rows] == [0.0, 0.5]


def test_steps_are_told_apart_by_backward_passes(network: Tiny) -> None:
    def passes(*seeds: int) -> Tensor:
        return torch.stack([network(random_input(seed)).sum() for seed in seeds]).sum()

    with hookviz.record(network, every=2, layers="conv1") as log:
        with torch.no_grad():
            passes(9)  # a validation
        passes(0, 1).backward()  # type: ignore[no-untyped-call]
        passes(2).backward()  # type: ignore[no-untyped-call]
        assert [row.step for row in log.rows] == [0]
        passes(3).backward()  # type: ignore[no-untyped-call]
    assert [row.step for row in log.rows] == [0, 2]
    # Gradients of all three passes have come together by then.
    parameters = list(network.conv1.parameters())
    norm = torch.cat([each.grad.flatten() for each in parameters]).norm()  # type: ignore[union-attr]
    assert log.rows[1].gradient_norm == pytest.approx(norm.item(), rel=1e-5)
    assert log.rows[1].update_ratio == 0


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_hooks_are_gone_and_what_was_recorded_stays(
    network: Tiny, error: type[BaseException]
) -> None:
    log = hookviz.TrainingLog()

    def fail() -> None:
        nonlocal log
        with hookviz.record(network) as log:
            train(network, 2)
            network(random_input(0))
            raise error

    with pytest.raises(error):
        fail()
    assert {row.step for row in log.rows} == {0, 1, 2}
    assert hook_count(network) == 0
    assert not any(parameter._backward_hooks for parameter in network.parameters())


@pytest.mark.parametrize("every", [0, True, 1.5, "2"])
def test_a_number_of_steps_that_means_nothing_is_refused(network: Tiny, every: Any) -> None:
    with pytest.raises(hookviz.SettingError, match="every="), hookviz.record(network, every=every):
        pytest.fail("the block must not run")
