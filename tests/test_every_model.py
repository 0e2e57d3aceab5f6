"""What hooks record is what the layers compute, for every network of the catalog."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.hooking import hooks, network_state
from hookviz.models import architectures, catalog
from hookviz.types import Model
from tests.every_network import IN_EVERY_NETWORK, ONE_OF_A_KIND

QUICK = ["squeezenet", "resnet18", "shufflenet_v2_x0_5"]


def assert_captures_are_exact(model: Model) -> None:
    side = max(64, model.min_size)
    image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    cap = hookviz.capture(model, image)
    convs = {
        name for name, module in model.network.named_modules() if isinstance(module, nn.Conv2d)
    }
    assert set(cap) == convs
    compared: list[str] = []

    def compare(call: hooks.Call) -> None:
        conv = model.network.get_submodule(call.layer)
        assert isinstance(conv, nn.Conv2d)
        again = F.conv2d(
            call.inputs[0],
            conv.weight,
            conv.bias,
            conv.stride,
            conv.padding,
            conv.dilation,
            conv.groups,
        )
        assert torch.equal(again[0], cap[call.layer].values), call.layer
        compared.append(call.layer)

    with torch.no_grad():
        with network_state.borrow(model.network) as replica, hooks.observe(replica, convs, compare):
            replica(image)
        untouched: Tensor = model.network(image)
    assert sorted(compared) == sorted(convs)
    assert cap.logits is not None
    assert torch.equal(cap.logits, untouched[0])


@pytest.mark.parametrize("name", QUICK)
def test_recorded_is_computed(name: str) -> None:
    assert_captures_are_exact(hookviz.load_model(name, "random"))


@pytest.mark.sweep("by day those of QUICK: the test above")
@IN_EVERY_NETWORK
def test_recorded_is_computed_in_every_model(of_catalog: Model) -> None:
    assert_captures_are_exact(of_catalog)


def made_of(name: str) -> set[type]:
    """The classes of all modules of a network."""
    network = architectures.build_without_memory(name, architectures.spec_classes(name))
    return {type(module) for module in network.modules()}


@pytest.mark.sweep("by day networks of a few layers: tests/capturing")
def test_each_network_is_made_of_what_those_that_stand_for_it_are_made_of() -> None:
    """So a larger one of a family has nothing that a sweep without EVERY_WAY does not meet."""
    family = {spec.name: spec.family for spec in catalog.described_models()}
    met: dict[str, set[type]] = {}
    for name in ONE_OF_A_KIND:
        met.setdefault(family[name], set()).update(made_of(name))
    missing = {name: made_of(name) - met[family[name]] for name in family}
    assert {name: kinds for name, kinds in missing.items() if kinds} == {}
