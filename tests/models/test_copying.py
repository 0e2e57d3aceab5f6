"""A copy for answers beside a training loop, as `copy.deepcopy` makes it."""

import threading

import pytest
import torch
from torch import nn

import hookviz
from hookviz.models.copying import copied
from tests.networks import Tiny, random_input, seeded


def test_a_copy_has_nothing_of_the_network_and_all_that_was_said_of_it() -> None:
    network = seeded(Tiny).train()
    model = hookviz.wrap(network, categories=list("abcde"), name="mine", train=True)
    copy = copied(model)
    assert (copy.name, copy.categories, copy.train) == ("mine", tuple("abcde"), True)
    ours, theirs = ({*map(id, each.network.modules())} for each in (copy, model))
    assert not ours & theirs
    before = hookviz.capture(copy, random_input(1))["conv1"].values
    with torch.no_grad():
        network.conv1.weight += 1
    assert torch.equal(hookviz.capture(copy, random_input(1))["conv1"].values, before)


def test_a_model_of_the_catalog_is_given_back() -> None:
    model = hookviz.load_model("shapesnet")
    assert copied(model) is model


class Locked(Tiny):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class KeepsItsOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.last = self.conv(torch.zeros(1, 3, 8, 8))


@pytest.mark.parametrize("build", [Locked, KeepsItsOutput])
def test_what_cant_be_copied_is_named(build: type[nn.Module]) -> None:
    with pytest.raises(hookviz.ModelError, match=f"{build.__name__} can't be copied: ."):
        copied(hookviz.wrap(seeded(build)))


def test_a_copy_waits_for_a_look_in_another_thread() -> None:
    """Whose hooks and flags it would have otherwise."""
    network = seeded(Tiny).train()
    model = hookviz.wrap(network)
    is_looking, goes_on, copies = threading.Event(), threading.Event(), []

    def wait(_share: float) -> None:
        is_looking.set()
        assert goes_on.wait(20)

    looks = threading.Thread(target=lambda: hookviz.capture(model, random_input(1), progress=wait))
    looks.start()
    assert is_looking.wait(20)
    copying = threading.Thread(target=lambda: copies.append(copied(model)))
    copying.start()
    copying.join(0.2)
    assert copies == []
    goes_on.set()
    for thread in (looks, copying):
        thread.join(20)
    [copy] = copies
    assert all(module.training and not module._forward_hooks for module in copy.network.modules())
