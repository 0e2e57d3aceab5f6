import copy

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.capturing import inputs
from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining import channel_ablation
from hookviz.explaining.channel_ablation import channel_effects
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.network_state import share
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone, silenced
from tests.wide_networks import Wide


@pytest.mark.parametrize("kind", ODD)
def test_each_channel_is_missed_by_a_fresh_network(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    model = as_model(network)
    effects = channel_effects(model, inputs.prepare(model, image), ["conv1", "conv2"])
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
    monkeypatch.setattr(channel_ablation, "MAX_WORK", 1e4)
    with pytest.raises(hookviz.ModelError, match=r"10 channels of Tiny.*Choose one layer alone"):
        channel_effects(tiny, inputs.prepare(tiny, noise), ["conv1", "conv2"])


def test_a_large_networks_scores_are_those_of_plain_passes_to_rounding_and_say_so() -> None:
    network, image = seeded(Wide).eval(), random_input(2, 24)
    model = as_model(share(network))
    model_input = inputs.prepare(model, image)
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
    passes = channel_ablation.ChannelAblation(model, model_input, info)
    assert passes.how == ""
    after = passes.scores_with_each(before.double(), ProgressReporter(None))
    assert "channels last" in passes.how
    expected = torch.cat([without(channel) for channel in range(96)])
    assert float((after - expected).abs().max()) <= 2e-5 * float(expected.abs().max())
    one = channel_ablation.ChannelAblation(model, model_input, info)
    exact = one.scores_with(5, ProgressReporter(None))
    assert torch.equal(exact.float(), expected[5])  # one alone runs plainly
    assert one.how == ""
