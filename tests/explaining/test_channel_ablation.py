import copy

import pytest
from torch import Tensor, nn

import hookviz
from hookviz.capturing import inputs
from hookviz.explaining import channel_ablation
from hookviz.explaining.channel_ablation import channel_effects
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone, silenced


def test_it_is_the_change_of_the_scores_without_each_kernel(tiny: Model, noise: Tensor) -> None:
    told: list[float] = []
    effects = channel_effects(
        tiny, inputs.prepare(tiny, noise), ["conv1", "conv2"], progress=told.append
    )
    network = copy.deepcopy(tiny.network)
    scores = network(noise)[0]
    for name, found in effects.items():
        for channel, effect in enumerate(found.tolist()):
            without = copy.deepcopy(network)
            conv = without.get_submodule(name)
            assert isinstance(conv, nn.Conv2d)
            assert conv.bias is not None
            conv.weight[channel], conv.bias[channel] = 0, 0
            assert effect == pytest.approx(float((without(noise)[0] - scores).norm()), abs=1e-6)
    assert [len(found) for found in effects.values()] == [4, 6]
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("kind", ODD)
def test_each_channel_is_missed_by_a_fresh_network(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    model = as_model(network)
    effects = channel_effects(model, inputs.prepare(model, image), ["conv1", "conv2"])
    before = alone(network, image)[0]
    for name, found in effects.items():
        expected = [
            float((alone(silenced(network, name, channel), image)[0] - before).detach().norm())
            for channel in range(len(found))
        ]
        assert found.tolist() == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_what_would_take_hours_is_refused_before_it_begins(
    tiny: Model, noise: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_ablation, "_MAX_WORK", 1e4)
    with pytest.raises(hookviz.ModelError, match=r"10 channels of Tiny.*Choose one layer alone"):
        channel_effects(tiny, inputs.prepare(tiny, noise), ["conv1", "conv2"])


def test_it_can_be_stopped(tiny: Model, noise: Tensor) -> None:
    def cancel(share: float) -> None:
        if share > 0.5:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        channel_effects(tiny, inputs.prepare(tiny, noise), ["conv1", "conv2"], cancel)
