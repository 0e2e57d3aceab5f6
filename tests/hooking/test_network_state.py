from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hookviz.hooking.network_state import ByNetwork, state_of, unchanged


def network() -> nn.Sequential:
    shared = nn.ReLU()
    block = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), shared, nn.Dropout())
    return nn.Sequential(block, shared, nn.Conv2d(4, 2, 3)).eval()


CHANGES: dict[str, Callable[[Any], object]] = {
    "a module replaced by one alike": lambda net: net[0].__setitem__(0, nn.Conv2d(3, 4, 3)),
    "a module appended": lambda net: net.append(nn.ReLU()),
    "a module taken out": lambda net: net.pop(1),
    "another name for a module": lambda net: net.register_module("alias", net[2]),
    "a parameter replaced": lambda net: setattr(
        net[2], "weight", nn.Parameter(torch.ones(2, 4, 3, 3))
    ),
    "a parameter taken away": lambda net: setattr(net[2], "bias", None),
    "a buffer replaced": lambda net: setattr(net[0][1], "running_mean", torch.ones(4)),
    "precision": lambda net: net.double(),
    "device": lambda net: net.to("meta"),
    "the mode of one module": lambda net: net[0][3].train(),
    "a hook": lambda net: net[0][0].register_forward_hook(lambda *_: None),
    "a hook before": lambda net: net[0][0].register_forward_pre_hook(lambda *_: None),
    "a hook on gradients": lambda net: net[0][0].register_full_backward_hook(lambda *_: None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_makes_another_state(change: Callable[[nn.Sequential], object]) -> None:
    changed = network()
    before = state_of(changed)
    kept = [*changed.modules(), *changed.buffers(), *changed.parameters()]  # identities stay taken
    assert state_of(changed) == before
    change(changed)
    assert state_of(changed) != before
    del kept


def test_a_hook_that_takes_anothers_place_makes_another_state() -> None:
    hooked = network()
    first = hooked.register_forward_hook(lambda *_: None)
    before = state_of(hooked)
    first.remove()
    hooked.register_forward_hook(lambda *_: None)
    assert state_of(hooked) != before


def test_a_pass_and_values_leave_the_state() -> None:
    same: Any = network()
    before = state_of(same)
    same(torch.zeros(1, 3, 8, 8))
    same[2].weight.data.mul_(2)
    assert state_of(same) == before


def test_one_module_in_training_mode_counts() -> None:
    mine: Any = network()
    assert not state_of(mine).is_training
    mine[0][3].train()
    assert state_of(mine).is_training


def test_a_network_that_holds_itself_is_walked_once() -> None:
    mine: Any = network()
    mine[0].register_module("whole", mine)
    assert state_of(mine) == state_of(mine)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
def test_a_script_has_a_state_too() -> None:
    scripted: Any = nn.Sequential(torch.jit.script(network()))
    before = state_of(scripted)
    assert state_of(scripted) == before
    scripted[0].train()
    assert state_of(scripted) != before


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
    with unchanged(mine) as state:
        findings[mine] = "found"
        mine.append(nn.ReLU())
        with unchanged(mine) as again:
            assert again is state
        assert findings[mine] == "found"
    with unchanged(mine) as later:
        assert later != state
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
