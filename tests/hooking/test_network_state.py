import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

import hookviz
from hookviz.explaining.layers.ranking import sources
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking import network_state
from hookviz.hooking.network_state import ByNetwork, Findings, is_shared, share, state_of, unchanged
from tests.networks import Tiny, as_model, random_input, seeded


def network() -> nn.Sequential:
    shared = Twice()
    block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), shared, nn.Dropout())
    return nn.Sequential(block, shared, nn.Conv2d(4, 2, 3)).eval()


STATES: dict[str, tuple[Callable[[Any], object], bool, bool]] = {
    # a change, and whether it makes another state: of a network of one's own, of the catalog's
    "a module replaced by one alike": (
        *(lambda net: net[0].__setitem__(0, nn.Conv2d(3, 4, 3)), True, True),
    ),
    "a module appended": (lambda net: net.append(nn.ReLU()), True, True),
    "a module taken out": (lambda net: net.pop(1), True, True),
    "another name for a module": (lambda net: net.register_module("alias", net[2]), True, True),
    "a weight of another shape": (
        *(lambda net: setattr(net[2], "weight", nn.Parameter(torch.ones(3, 4, 3, 3))), True, True),
    ),
    "a parameter taken away": (lambda net: setattr(net[2], "bias", None), True, True),
    "a weight of the same shape": (
        *(lambda net: setattr(net[2], "weight", nn.Parameter(torch.ones(2, 4, 3, 3))), False, True),
    ),
    "a buffer replaced": (
        *(lambda net: setattr(net[0][1], "running_mean", torch.ones(4)), False, True),
    ),
    "a pass": (lambda net: net(torch.zeros(1, 3, 8, 8)), False, False),
    "values": (lambda net: net[2].weight.data.mul_(2), False, False),
    "the mode of one module": (lambda net: net[0][3].train(), False, False),
    "a hook": (lambda net: net[0][0].register_forward_hook(print), False, False),
    "a hook on gradients": (
        *(lambda net: net[0][0].register_full_backward_hook(print), False, False),
    ),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
@pytest.mark.parametrize(("change", "own", "of_catalog"), STATES.values(), ids=STATES)
def test_other_modules_make_another_state_and_what_a_pass_does_none(
    change: Callable[[Any], object], own: bool, of_catalog: bool
) -> None:
    for mine, is_another in ((network(), own), (share(network()), of_catalog)):
        kept = [*mine.modules(), *mine.buffers(), *mine.parameters()]  # identities stay taken
        before = state_of(mine)
        assert state_of(mine) == before
        change(mine)
        assert kept
        assert (state_of(mine) != before) == is_another
    assert (is_shared(mine), is_shared(network())) == (True, False)
    itself, scripted = network(), nn.Sequential(torch.jit.script(network()))
    itself[0].register_module("whole", itself)  # it is walked once
    for odd in (itself, scripted):
        assert state_of(odd) == state_of(odd)


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
        mine.append(nn.ReLU())
        with unchanged(other), unchanged(mine):  # it is looked at once within a block
            assert [findings[mine], findings[other]] == ["found anew", "found"]
    with unchanged(mine):
        assert mine not in findings
    del other, each
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


class Twice(nn.ReLU):
    """A layer with a method that a hook can be, which makes the hook the network's own."""

    def twice(self, _module: nn.Module, _inputs: tuple[Tensor], output: Tensor) -> Tensor:
        return output * 2


CHANGES: dict[str, Callable[[Any], object]] = {
    "a module": lambda net: net[0].__setitem__(0, seeded(lambda: nn.Conv2d(3, 4, 3, bias=False))),
    "a module of another shape": lambda net: net[0].__setitem__(
        0, seeded(lambda: nn.Conv2d(3, 4, 5, stride=2))
    ),
    "a parameter": lambda net: setattr(
        net[0][0], "bias", nn.Parameter(torch.ones(4), requires_grad=False)
    ),
    "a buffer": lambda net: setattr(net[0][1], "running_var", torch.full((4,), 9.0)),
    "a hook": lambda net: net[1].register_forward_hook(net[1].twice),
    "precision": lambda net: net.double(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_capture_after_a_change_is_of_the_changed_network(
    change: Callable[[nn.Sequential], object],
) -> None:
    image, networks = random_input(0), [seeded(network), seeded(network)]
    changed, fresh = map(as_model, networks)
    before = hookviz.capture(changed, image, "2", logits=False)["2"].values
    change(networks[0])
    change(networks[1])  # of which nothing is known yet
    after, expected = (
        hookviz.capture(each, image, "2", logits=False)["2"].values for each in (changed, fresh)
    )
    assert torch.equal(after, expected)
    assert after.shape != before.shape or not torch.equal(after, before)
    shapes = [
        {layer.name: layer.output_shape for layer in hookviz.list_layers(each)}
        for each in (changed, fresh)
    ]
    assert shapes[0] == shapes[1]


def test_what_is_found_beside_the_layers_goes_with_a_change_too() -> None:
    own, shape = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)), (3, 16, 16)
    model = as_model(own)
    assert receptive_fields(model, shape)["0"].size == (3, 3)
    assert sources(model)["2"] == "0"
    own[0] = seeded(lambda: nn.Conv2d(3, 4, 5, stride=2))
    own.insert(2, nn.Conv2d(4, 4, 1))
    assert receptive_fields(model, shape)["0"].size == (5, 5)
    assert sources(model) == {"2": "0", "3": "2"}


def test_a_finding_is_kept_while_the_network_stays_as_it_is_and_the_oldest_go_first() -> None:
    findings, mine = Findings[str](most=2), network()
    assert findings.of(mine).keep("a", "first") == "first"
    mine.train(not mine.training)
    handle = mine[1].register_forward_hook(lambda *_call: None)
    assert findings.of(mine).get("a") == "first"
    handle.remove()
    mine[1] = nn.Identity()
    assert findings.of(mine).get("a") is None
    known = findings.of(mine)
    for key in "abc":
        known.keep(key, key)
    assert [known.get(key) for key in "abc"] == [None, "b", "c"]


def test_a_replica_shares_every_tensor_and_no_module_and_no_hook() -> None:
    inner, image = seeded(Tiny), random_input(1)
    network = nn.Sequential(inner, nn.BatchNorm1d(5)).eval()
    replica = network_state.replicate(network)
    mine, theirs = network.state_dict(), replica.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(mine[key].data_ptr() == theirs[key].data_ptr() for key in mine)
    assert not set(map(id, network.modules())) & set(map(id, replica.modules()))
    with torch.no_grad():
        expected = network(image)
        inner.conv1.register_forward_hook(lambda *_: torch.zeros(()))
        assert torch.equal(network_state.replicate(network)(image), expected)
    wide = nn.Conv2d(3, 10_000, 3)  # a copy of shapes alone takes no memory
    found: Tensor = network_state.meta_copy(wide)(torch.empty(1, 3, 9_000, 9_000, device="meta"))
    assert found.shape == (1, 10_000, 8_998, 8_998)
    assert wide.weight.device.type == "cpu"


def test_a_borrowed_replica_is_nobody_elses_and_comes_back_whatever_is_raised() -> None:
    network = seeded(Tiny).eval()
    with network_state.borrow(network) as first, network_state.borrow(network) as second:
        assert len({id(network), id(first), id(second)}) == 3
    with pytest.raises(KeyboardInterrupt), network_state.borrow(network) as third:
        raise KeyboardInterrupt
    with network_state.borrow(network) as fourth:
        assert fourth is third
        assert third is first or third is second
    spoil: Any
    for spoil in (lambda it: it.conv1.register_forward_hook(print), lambda it: it.train()):
        with network_state.borrow(network) as spoiled:
            spoil(spoiled)
        with network_state.borrow(network) as other:  # the spoiled one does not come back
            assert other is not spoiled
            assert not other.training
    before = len(network_state._idle)
    del network
    assert len(network_state._idle) == before - 1  # it is freed with its replicas


def test_threads_never_hold_one_replica_together() -> None:
    network, held, guard = seeded(Tiny), set[int](), threading.Lock()

    def borrow_often(_: int) -> None:
        for _ in range(50):
            with network_state.borrow(network) as replica:
                with guard:
                    assert id(replica) not in held
                    held.add(id(replica))
                with guard:
                    held.remove(id(replica))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(borrow_often, range(8)))


@pytest.mark.parametrize("norm", ["parametrized", "old"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_weight_norm_keeps_working_in_a_replica(norm: str) -> None:
    conv = nn.Conv2d(3, 2, 3)
    normed: nn.Module = (
        parametrizations.weight_norm(conv) if norm == "parametrized" else weight_norm(conv)
    )
    network = nn.Sequential(normed)
    image = random_input(2)
    with torch.no_grad():
        network(image)
        assert torch.equal(network_state.replicate(network)(image), network(image))


def test_each_of_two_equal_networks_shows_its_own_maps_and_fields() -> None:
    class Alike(nn.Sequential):
        """Equal to any other, whatever its weights and kernels are."""

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Alike)

        def __hash__(self) -> int:
            return 1

    networks = [seeded(lambda side=side: Alike(nn.Conv2d(3, 4, side))) for side in (3, 5)]  # type: ignore[misc]
    assert networks[0] == networks[1]
    image = torch.rand(1, 3, 32, 32)
    for network, side in zip(networks, (3, 5), strict=True):
        model = hookviz.wrap(network)
        with torch.no_grad():
            assert torch.equal(hookviz.capture(model, image)["0"].values, network(image)[0])
        assert receptive_fields(model, (3, 32, 32))["0"].size == (side, side)
