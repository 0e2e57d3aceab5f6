"""What edited models compute, held against plain hooks; copies, other weights and random ones."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torchvision import models

import hookviz
from hookviz import edits
from hookviz.capturing.cache import Budget
from hookviz.errors import SettingError, UnknownLayerError
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.models.derived_models import copied, tensors_of, untrained, with_tensors
from hookviz.types import Model
from tests.lenses.test_every_lens import Untouched
from tests.networks import Tiny, all_hooks, as_model, as_shared, random_input, seeded
from tests.small_transformers import SIDE, vit

EDITS = {
    "conv1": edits.zero(channels=[1]),
    "conv?": edits.scale(2),
    "head": lambda call: -call.output,
}


def plainly(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What conv1, conv2 and the head put out with `EDITS`, by hand."""
    network = seeded(Tiny).eval()
    with torch.no_grad():
        first = network.conv1(image)
        first[:, 1] = 0
        first = first * 2
        second = network.conv2(first.relu()) * 2
        scores = -network.head(second.relu().mean((2, 3)))
    return first[0], second[0], scores[0]


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_all_that_takes_a_model_takes_edits(make: Callable[[nn.Module], Model]) -> None:
    model, image = make(seeded(Tiny)), random_input(0)
    plain = hookviz.capture(model, image[0])
    changed = hookviz.edited(model, EDITS)
    first, second, scores = plainly(image)
    for cap in (
        hookviz.capture(changed, image[0]),
        hookviz.capture(model, image[0], edits=EDITS),
        *hookviz.capture(changed, [image[0]]),
    ):
        assert torch.equal(cap["conv1"].values, first)
        assert torch.equal(cap["conv2"].values, second)
    found = hookviz.capture(changed, image[0])
    assert found.logits is not None
    assert torch.equal(found.logits, scores)
    lens = hookviz.run_lens("ablate", changed, image[0], layer="conv2", channels=[0])
    torch.testing.assert_close(torch.from_numpy(lens.values["logits_before"]), scores)
    options: dict[str, Any] = {"layer": "conv2", "channels": [0]}
    same = hookviz.run_lens("ablate", model, image[0], edits=EDITS, **options)
    np.testing.assert_array_equal(same.values["logits_before"], lens.values["logits_before"])
    channels = hookviz.run_lens("channels-that-matter", changed, image[0], layer="conv1", target=1)
    assert channels.values["logit_change"][1] == pytest.approx(0)  # it is 0 without an ablation
    again = hookviz.capture(model, image[0])
    assert again.logits is not None
    assert plain.logits is not None
    assert torch.equal(again.logits, plain.logits)
    assert all_hooks(changed) == 0
    assert changed.title == "Tiny with conv1, conv2, head edited"
    twice = hookviz.edited(hookviz.edited(model, {"conv1": edits.zero}), {"conv1": edits.add(3)})
    assert (hookviz.capture(twice, image[0])["conv1"].values == 3).all()  # edits add up
    network, image, edit = seeded(vit), random_input(0, SIDE), {"blocks.0.mlp": edits.zero}
    found = hookviz.attention(network, image, "blocks.1", edits=edit)["blocks.1.attn"]
    with hookviz.edit(network, edit):  # attention takes edits too
        expected = hookviz.attention(network, image, "blocks.1")["blocks.1.attn"]
    assert torch.equal(found, expected)
    assert not torch.equal(found, hookviz.attention(network, image, "blocks.1")["blocks.1.attn"])


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_a_cache_has_both(make: Callable[[nn.Module], Model]) -> None:
    model, image, cache = make(seeded(Tiny)), random_input(0)[0], Budget(1 << 20).cache(1 << 20)
    changed = hookviz.edited(model, {"conv1": edits.zero})
    for _ in range(2):
        assert hookviz.capture(model, image, cache=cache)["conv1"].values.any()
        assert not hookviz.capture(changed, image, cache=cache)["conv1"].values.any()
    assert changed.digest != model.digest


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_a_look_within_a_pass_has_the_edits_of_its_own_model(
    make: Callable[[nn.Module], Model],
) -> None:
    model, image = make(seeded(Tiny)), random_input(0)
    changed = hookviz.edited(model, {"conv1": edits.scale(2)})
    plain, own = (hookviz.capture(each, image[0]).logits for each in (model, changed))
    assert plain is not None
    assert own is not None
    with private_replica(changed) as network:
        for each, scores in ((model, plain), (changed, own)):
            with private_replica(each) as inner:
                assert torch.equal(forward_pass(each, inner, image)[0], scores)
        assert torch.equal(forward_pass(changed, network, image)[0], own)


def test_what_is_no_edit_is_refused() -> None:
    model = as_model(seeded(Tiny))
    with pytest.raises(UnknownLayerError, match="conv3"):
        hookviz.edited(model, {"conv3": edits.zero})
    with pytest.raises(SettingError, match="3 is no edit"):
        hookviz.edited(model, {"conv1": 3})
    with pytest.raises(SettingError, match="is no mapping from layers to edits"):
        hookviz.edited(model, "conv1")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no channel 9 in layer 'conv1'"):
        hookviz.capture(
            hookviz.edited(model, {"conv1": edits.zero(channels=[9])}), random_input(0)[0]
        )


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


def test_what_cant_be_copied_is_named() -> None:
    locked, keeps = seeded(Tiny), seeded(Tiny)
    locked.lock = threading.Lock()  # type: ignore[assignment]
    keeps.last = keeps.conv1(torch.zeros(1, 3, 8, 8))
    for network in (locked, keeps):
        with pytest.raises(hookviz.ModelError, match=r"Tiny can't be copied: ."):
            copied(hookviz.wrap(network))


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


class Recurrent(nn.Module):
    """A conv layer, a batch norm, an LSTM over its rows, and two linear layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.normed = parametrizations.weight_norm(nn.Linear(14, 14))
        self.lstm = nn.LSTM(14, 5, batch_first=True, bidirectional=True)
        self.first, self.second = nn.Linear(10, 10), nn.Linear(10, 10)
        self.second.weight = self.first.weight

    def forward(self, images: Tensor) -> Tensor:
        rows, _state = self.lstm(self.normed(self.norm(self.conv(images)).mean(1)))
        scores: Tensor = self.second(self.first(rows[:, -1]).tanh())
        return scores


REPLACED = {
    "an LSTM's": "lstm.weight_hh_l0_reverse",
    "that two layers share": "first.weight",
    "a bias": "second.bias",
    "a buffer": "norm.running_mean",
    "of weight norm": "normed.parametrizations.weight.original0",
}


@pytest.mark.parametrize("name", REPLACED.values(), ids=REPLACED)
def test_other_weights_stand_for_its_own_in_a_pass(name: str) -> None:
    network, image = seeded(Recurrent).eval(), random_input(1)
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


@pytest.mark.parametrize("name", ["squeezenet", "shapesnet"])
def test_of_the_catalog_it_is_what_random_weights_load(name: str) -> None:
    model = hookviz.load_model(name)
    untouched = Untouched(model.network)
    blank = untrained(model)
    assert blank.digest == hookviz.load_model(name, "random").digest
    assert blank.weights == "random"
    assert blank.categories == model.categories
    assert not blank.network.training
    assert not any(parameter.requires_grad for parameter in blank.network.parameters())
    untouched.check()
    assert copied(model) is model  # of the catalog
    with pytest.raises(hookviz.ModelError, match="random already"):
        untrained(hookviz.load_model(name, "random"))


def test_a_checkpoint_keeps_its_number_of_classes(tmp_path: Path) -> None:
    network = seeded(lambda: models.resnet18(num_classes=4))
    torch.save(network.state_dict(), tmp_path / "mine.pth")
    model = hookviz.load_model("resnet18", tmp_path / "mine.pth")
    blank = untrained(model)
    assert blank.network(random_input(0, 64)).shape == (1, 4)
    assert blank.digest != model.digest


def test_ones_own_network_draws_its_weights_anew_and_the_same_every_time(
    tiny: hookviz.Model,
) -> None:
    untouched = Untouched(tiny.network)
    versions = [each._version for each in tiny.network.parameters()]
    state = torch.get_rng_state()
    blanks = [untrained(tiny) for _ in range(2)]
    assert torch.equal(state, torch.get_rng_state())
    one, other = map(tensors_of, blanks)
    for name, value in tiny.network.named_parameters():
        assert torch.equal(one[name], other[name])
        assert not torch.equal(value, one[name]), name
    assert blanks[0].digest == blanks[1].digest != tiny.digest
    scores = hookviz.capture(blanks[0], random_input(0)).logits
    with private_replica(blanks[0]) as network:
        assert scores is not None
        assert torch.equal(network(random_input(0))[0], scores)
    assert versions == [each._version for each in tiny.network.parameters()]
    untouched.check()
    norms = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    norms(random_input(0))
    means = norms[1].get_buffer("running_mean")
    before, version = means.clone(), means._version
    assert not tensors_of(untrained(as_model(norms)))["1.running_mean"].any()  # buffers begin again
    assert norms[1].running_mean is means
    assert torch.equal(means, before)
    assert (means._version, norms.training) == (version, True)


def test_what_can_not_be_drawn_anew_is_named() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, images: Tensor) -> Tensor:
            return images.mean((2, 3)) @ self.weight

    network = nn.Sequential(OrderedDict(conv=nn.Conv2d(3, 3, 1), own=Own()))
    with pytest.raises(hookviz.ModelError, match=r"'own.weight'.*Own has no reset_parameters"):
        untrained(as_model(network))
    normed = seeded(Tiny)  # of a product that is put together anew
    normed.conv2 = nn.utils.parametrizations.weight_norm(normed.conv2)
    with pytest.raises(hookviz.ModelError, match="can't be drawn anew"):
        untrained(as_model(normed))
