import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.capturing import inputs
from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.patching import part_changes
from hookviz.explaining.patching.part_changes import GrowingRows, channel_effects
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.network_state import share
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone, silenced
from tests.wide_networks import Wide


def grown(one: Tensor, many: Tensor) -> Tensor:
    one += many
    return one


def less(one: Tensor, many: Tensor) -> Tensor:
    one -= 2 * many
    return one


JOINED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "in place": grown,
    "subtracted in place": less,
    "as a method": lambda one, many: one.mul_(many),
    "beside each other": lambda one, many: torch.cat([one, many], 1),
    "by name": lambda one, many: torch.concat((many, one, many), dim=-1),
    "broadcast": lambda one, many: one * many,
}


@pytest.mark.parametrize("name", JOINED)
def test_one_row_is_joined_to_many_as_to_each(name: str) -> None:
    one, many = torch.rand(1, 3, 4, 4), torch.rand(5, 3, 4, 4)
    kept = one.clone()
    with GrowingRows():
        found = JOINED[name](one, many)
    each = torch.cat([JOINED[name](kept.clone(), row[None]) for row in many])
    assert torch.equal(found, each)


def test_what_fits_already_is_left_alone() -> None:
    same = torch.rand(2, 3)
    with GrowingRows():
        before = same
        same += 1
        assert same is before
        assert torch.cat([torch.rand(1, 3), same]).shape == (3, 3)
        assert torch.cat([torch.rand(4), torch.rand(1)], 0).shape == (5,)
        with pytest.raises(RuntimeError):
            torch.cat([torch.rand(2, 3), torch.rand(4, 3)], 1)


@pytest.mark.parametrize("kind", ODD)
def test_each_channel_is_missed_by_a_fresh_network(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    model = as_model(network)
    effects = channel_effects(model, inputs.prepare_input(model, image), ["conv1", "conv2"])
    before = alone(network, image)[0]
    for name, result in effects.items():
        expected = [
            float((alone(silenced(network, name, channel), image)[0] - before).detach().norm())
            for channel in range(len(result))
        ]
        assert result.tolist() == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_what_would_take_hours_is_refused_before_it_begins(
    tiny: Model, noise: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_changes, "MAX_WORK", 1e4)
    with pytest.raises(hookviz.ModelError, match=r"10 channels of Tiny.*Choose one layer alone"):
        channel_effects(tiny, inputs.prepare_input(tiny, noise), ["conv1", "conv2"])


def test_a_large_networks_scores_are_those_of_plain_passes_to_rounding_and_say_so() -> None:
    network, image = seeded(Wide).eval(), random_input(2, 24)
    model = as_model(share(network))
    model_input = inputs.prepare_input(model, image)
    trace = input_trace(model, model_input)
    info = next(info for info in trace.layers if info.name == "conv1")

    def without(channel: int) -> Tensor:
        silent = copy.deepcopy(network)
        assert silent.conv1.bias is not None
        with torch.no_grad():
            silent.conv1.weight[channel], silent.conv1.bias[channel] = 0, 0
            scores: Tensor = silent(image)
        return scores

    with torch.no_grad():
        before = network(image)[0]
    passes = part_changes.ChannelAblation(model, model_input, info)
    assert passes.how == ""
    after = passes.scores_with_each(before.double(), ProgressReporter(None))
    assert "channels last" in passes.how
    expected = torch.cat([without(channel) for channel in range(96)])
    assert float((after - expected).abs().max()) <= 2e-5 * float(expected.abs().max())
    one = part_changes.ChannelAblation(model, model_input, info)
    exact = one.scores_with(5, ProgressReporter(None))
    assert torch.equal(exact.float(), expected[5])  # one alone runs plainly
    assert one.how == ""
