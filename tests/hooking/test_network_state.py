from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.ranking import sources
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking.network_state import ByNetwork, Findings, is_shared, share, state_of, unchanged
from tests.networks import as_model, random_input, seeded


def network() -> nn.Sequential:
    shared = nn.ReLU()
    block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), shared, nn.Dropout())
    return nn.Sequential(block, shared, nn.Conv2d(4, 2, 3)).eval()


MADE_ANEW: dict[str, Callable[[Any], object]] = {
    "a module replaced by one alike": lambda net: net[0].__setitem__(0, nn.Conv2d(3, 4, 3)),
    "a module appended": lambda net: net.append(nn.ReLU()),
    "a module taken out": lambda net: net.pop(1),
    "another name for a module": lambda net: net.register_module("alias", net[2]),
    "a weight of another shape": lambda net: setattr(
        net[2], "weight", nn.Parameter(torch.ones(3, 4, 3, 3))
    ),
    "a parameter taken away": lambda net: setattr(net[2], "bias", None),
}
OTHER_TENSORS: dict[str, Callable[[Any], object]] = {
    "a weight of the same shape": lambda net: setattr(
        net[2], "weight", nn.Parameter(torch.ones(2, 4, 3, 3))
    ),
    "a buffer replaced": lambda net: setattr(net[0][1], "running_mean", torch.ones(4)),
}
THE_SAME: dict[str, Callable[[Any], object]] = {
    "a pass": lambda net: net(torch.zeros(1, 3, 8, 8)),
    "values": lambda net: net[2].weight.data.mul_(2),
    "the mode of one module": lambda net: net[0][3].train(),
    "a hook": lambda net: net[0][0].register_forward_hook(lambda *_: None),
    "a hook on gradients": lambda net: net[0][0].register_full_backward_hook(lambda *_: None),
}


def is_another_after(change: Callable[[nn.Sequential], object], mine: nn.Sequential) -> bool:
    kept = [*mine.modules(), *mine.buffers(), *mine.parameters()]  # identities stay taken
    before = state_of(mine)
    assert state_of(mine) == before
    change(mine)
    assert kept
    return state_of(mine) != before


@pytest.mark.parametrize("is_of_catalog", [False, True])
@pytest.mark.parametrize("change", MADE_ANEW.values(), ids=MADE_ANEW)
def test_other_modules_make_another_state(
    change: Callable[[nn.Sequential], object], is_of_catalog: bool
) -> None:
    assert is_another_after(change, share(network()) if is_of_catalog else network())


@pytest.mark.parametrize("change", OTHER_TENSORS.values(), ids=OTHER_TENSORS)
def test_other_tensors_make_another_state_of_what_has_replicas(
    change: Callable[[nn.Sequential], object],
) -> None:
    assert is_another_after(change, share(network()))
    assert not is_another_after(change, network())


@pytest.mark.parametrize("is_of_catalog", [False, True])
@pytest.mark.parametrize("change", THE_SAME.values(), ids=THE_SAME)
def test_a_pass_values_modes_and_hooks_leave_the_state(
    change: Callable[[nn.Sequential], object], is_of_catalog: bool
) -> None:
    assert not is_another_after(change, share(network()) if is_of_catalog else network())


def test_networks_of_the_catalog_are_told_by_identity() -> None:
    mine, other = network(), network()
    assert share(mine) is mine
    assert (is_shared(mine), is_shared(other)) == (True, False)


def test_a_network_that_holds_itself_is_walked_once() -> None:
    mine: Any = network()
    mine[0].register_module("whole", mine)
    assert state_of(mine) == state_of(mine)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
def test_a_script_has_a_state_too() -> None:
    scripted: Any = nn.Sequential(torch.jit.script(network()))
    assert state_of(scripted) == state_of(scripted)


def test_what_is_kept_goes_when_the_network_was_changed() -> None:
    findings, mine, other = ByNetwork(), network(), network()
    for each in (mine, other):
        with unchanged(each):
            findings[each] = "found"
    with unchanged(mine):
        assert findings[mine] == "found"
    mine.append(nn.ReLU())
    with unchanged(mine):
        assert mine not in findings
        findings[mine] = "found anew"
    with unchanged(other), unchanged(mine):
        assert [findings[mine], findings[other]] == ["found anew", "found"]


def test_within_a_block_a_network_is_looked_at_once() -> None:
    findings, mine = ByNetwork(), network()
    with unchanged(mine):
        findings[mine] = "found"
        mine.append(nn.ReLU())
        with unchanged(mine):
            assert findings[mine] == "found"
    with unchanged(mine):
        assert mine not in findings


def test_a_network_goes_with_what_is_kept_of_it() -> None:
    findings, mine = ByNetwork(), network()
    with unchanged(mine):
        findings[mine] = "found"
    del mine
    assert len(findings) == 0


def test_blocks_that_end_in_another_order_are_told_apart() -> None:
    findings, mine, other = ByNetwork(), network(), network()
    first, second = unchanged(mine), unchanged(other)
    first.__enter__()
    second.__enter__()
    findings[mine] = findings[other] = "found"
    first.__exit__(None, None, None)
    mine.append(nn.ReLU())
    with unchanged(mine):
        assert mine not in findings
    other.append(nn.ReLU())
    with unchanged(other):
        assert findings[other] == "found"  # its block has not ended
    second.__exit__(None, None, None)
    with unchanged(other):
        assert other not in findings


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
