"""Other weights in the passes of a network, which stays as it is."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.models.changed_weights import tensors_of, with_tensors
from tests.networks import as_model, random_input, seeded


class Normed(nn.Module):
    """A conv layer, a batch norm, and five classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.norm(self.conv(images)).mean((2, 3)))
        return scores


class Recurrent(nn.Module):
    """A conv layer, an LSTM over its rows, and two linear layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.lstm = nn.LSTM(14, 5, batch_first=True, bidirectional=True)
        self.first, self.second = nn.Linear(10, 10), nn.Linear(10, 10)
        self.second.weight = self.first.weight

    def forward(self, images: Tensor) -> Tensor:
        rows, _state = self.lstm(self.conv(images).mean(1))
        scores: Tensor = self.second(self.first(rows[:, -1]).tanh())
        return scores


def weight_normed() -> nn.Module:
    normed = parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    return nn.Sequential(normed, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))


REPLACED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "an LSTM's": (Recurrent, "lstm.weight_hh_l0_reverse"),
    "that two layers share": (Recurrent, "first.weight"),
    "a bias": (Recurrent, "second.bias"),
    "a buffer": (Normed, "norm.running_mean"),
    "of weight norm": (weight_normed, "0.parametrizations.weight.original0"),
}


@pytest.mark.parametrize(("build", "name"), REPLACED.values(), ids=REPLACED)
def test_other_weights_stand_for_its_own_in_a_pass(build: Any, name: str) -> None:
    network, image = seeded(build).eval(), random_input(1)
    own = {key: (value, value.clone()) for key, value in network.state_dict(keep_vars=True).items()}
    other = own[name][1].detach() + 0.5
    twin = copy.deepcopy(network)
    with torch.no_grad():
        twin.state_dict(keep_vars=True)[name].copy_(other)
        expected, before = twin(image), network(image)
    model = as_model(network)
    changed = with_tensors(model, {name: other})
    assert model.digest != changed.digest == as_model(twin).digest
    assert torch.equal(tensors_of(changed)[name], other)
    cache = Budget(1 << 20).cache(1 << 20)
    for given, wanted in ((model, before), (changed, expected), (model, before)):
        with private_replica(given) as lent:
            assert torch.equal(forward_pass(given, lent, image), wanted)
        found = hookviz.capture(given, image, cache=cache).logits
        assert found is not None
        assert torch.equal(found, wanted[0])
        with torch.no_grad():
            assert torch.equal(network(image), before)
    for key, value in network.state_dict(keep_vars=True).items():
        assert value is own[key][0]
        assert torch.equal(value, own[key][1])


def test_of_a_model_of_the_catalog_modules_are_made_that_share_the_rest() -> None:
    model = hookviz.load_model("shapesnet")
    name = "stem.first.conv.weight"
    own = tensors_of(model)
    changed = with_tensors(model, {name: own[name] * 2})
    assert changed.network is not model.network
    now = dict(changed.network.named_parameters())
    assert torch.equal(now[name], own[name] * 2)
    assert all(now[each].data_ptr() == own[each].data_ptr() for each in now if each != name)
    assert changed.digest != model.digest
    image = random_input(1, 64)
    maps = [hookviz.capture(each, image)["stem.first.conv"].values for each in (model, changed)]
    assert not torch.equal(*maps)
