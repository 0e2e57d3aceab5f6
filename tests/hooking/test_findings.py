from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.ranking import sources
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking.findings import Findings
from tests.networks import as_model, random_input, seeded

WANTED = "3"


class OfItsOwn(nn.ReLU):
    """A layer with a method that a hook can be, which makes the hook the network's own."""

    def twice(self, _module: nn.Module, _inputs: tuple[Tensor], output: Tensor) -> Tensor:
        return output * 2


def layers() -> nn.Sequential:
    block = nn.Sequential(nn.BatchNorm2d(4), nn.Dropout(0.5))
    return nn.Sequential(nn.Conv2d(3, 4, 3), OfItsOwn(), block, nn.Conv2d(4, 2, 3))


def other_conv() -> nn.Conv2d:
    """A layer like the first one, with other weights."""
    torch.rand(1)
    return nn.Conv2d(3, 4, 3)


def _scale(network: Any) -> None:
    network[2][0].running_var = torch.full((4,), 9.0)


CHANGES: dict[str, Callable[[Any], object]] = {
    "a module": lambda net: net.__setitem__(0, seeded(other_conv)),
    "a module of another shape": lambda net: net.__setitem__(
        0, seeded(lambda: nn.Conv2d(3, 4, 5, stride=2))
    ),
    "a parameter": lambda net: setattr(
        net[0], "bias", nn.Parameter(torch.ones(4), requires_grad=False)
    ),
    "a buffer": _scale,
    "a hook": lambda net: net[1].register_forward_hook(net[1].twice),
    "precision": lambda net: net.double(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_capture_after_a_change_is_of_the_changed_network(
    change: Callable[[nn.Sequential], object],
) -> None:
    model, image = as_model(seeded(layers)), random_input(0)
    before = hookviz.capture(model, image, WANTED, logits=False)[WANTED].values
    assert isinstance(model.network, nn.Sequential)
    change(model.network)
    after = hookviz.capture(model, image, WANTED, logits=False)[WANTED].values
    fresh = as_model(seeded(layers))  # of which nothing is known yet
    assert isinstance(fresh.network, nn.Sequential)
    change(fresh.network)
    expected = hookviz.capture(fresh, image, WANTED, logits=False)[WANTED].values
    assert torch.equal(after, expected)
    assert after.shape != before.shape or not torch.equal(after, before)
    listed = {layer.name: layer.output_shape for layer in hookviz.list_layers(model)}
    assert listed == {layer.name: layer.output_shape for layer in hookviz.list_layers(fresh)}


def test_what_is_found_beside_the_layers_goes_with_a_change_too() -> None:
    model, shape = as_model(seeded(layers)), (3, 16, 16)
    assert isinstance(model.network, nn.Sequential)
    assert receptive_fields(model, shape)["0"].size == (3, 3)
    assert sources(model)["3"] == "0"
    model.network[0] = seeded(lambda: nn.Conv2d(3, 4, 5, stride=2))
    model.network.insert(2, nn.Conv2d(4, 4, 1))
    assert receptive_fields(model, shape)["0"].size == (5, 5)
    assert sources(model) == {"2": "0", "4": "2"}


def test_a_finding_is_kept_while_the_network_stays_as_it_is() -> None:
    findings, network = Findings[str](most=2), layers()
    assert findings.of(network).keep("a", "first") == "first"
    assert findings.of(network).get("a") == "first"
    network.train(not network.training)
    handle = network[1].register_forward_hook(lambda *_call: None)
    assert findings.of(network).get("a") == "first"
    handle.remove()
    network[1] = nn.Identity()
    assert findings.of(network).get("a") is None


def test_the_oldest_go_first() -> None:
    known = Findings[int](most=2).of(layers())
    for number in range(3):
        known.keep(number, number)
    assert [known.get(number) for number in range(3)] == [None, 1, 2]
