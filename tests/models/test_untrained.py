from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.hooking.forward_pass import private_replica
from hookviz.models.derived_models import tensors_of
from hookviz.models.untrained import untrained
from tests.lenses.test_every_lens import Untouched
from tests.networks import Tiny, as_model, random_input, seeded


def same(some: nn.Module, others: nn.Module) -> bool:
    known, theirs = some.state_dict(), others.state_dict()
    return known.keys() == theirs.keys() and all(
        torch.equal(value, theirs[name]) for name, value in known.items()
    )


@pytest.mark.parametrize("name", ["squeezenet", "shapesnet"])
def test_of_the_catalog_it_is_what_random_weights_load(name: str) -> None:
    model = hookviz.load_model(name)
    untouched = Untouched(model.network)
    blank = untrained(model)
    assert same(blank.network, hookviz.load_model(name, "random").network)
    assert blank.weights == "random"
    assert blank.categories == model.categories
    assert not blank.network.training
    assert not any(parameter.requires_grad for parameter in blank.network.parameters())
    untouched.check()


def test_a_checkpoint_keeps_its_number_of_classes(tmp_path: Path) -> None:
    network = seeded(lambda: models.resnet18(num_classes=4))
    torch.save(network.state_dict(), tmp_path / "mine.pth")
    model = hookviz.load_model("resnet18", tmp_path / "mine.pth")
    blank = untrained(model)
    assert blank.network(random_input(0, 64)).shape == (1, 4)
    assert not same(blank.network, model.network)


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


def test_buffers_begin_again_too_and_those_of_the_network_stay() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    network(random_input(0))
    means = network[1].get_buffer("running_mean")
    before, version = means.clone(), means._version
    blank = untrained(as_model(network))
    assert not tensors_of(blank)["1.running_mean"].any()
    assert network[1].running_mean is means
    assert torch.equal(means, before)
    assert means._version == version
    assert network.training


def test_what_can_not_be_drawn_anew_is_named() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = images.mean((2, 3)) @ self.weight
            return scores

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)
            self.own = Own()

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.own(self.conv(images))
            return scores

    with pytest.raises(hookviz.ModelError, match=r"'own.weight'.*Own has no reset_parameters"):
        untrained(as_model(seeded(Network)))


def test_a_product_that_is_put_together_anew_is_not_taken_for_a_weight() -> None:
    class Normed(Tiny):
        def __init__(self) -> None:
            super().__init__()
            self.conv2 = nn.utils.parametrizations.weight_norm(self.conv2)

    model = as_model(seeded(Normed))
    with pytest.raises(hookviz.ModelError, match="can't be drawn anew"):
        untrained(model)


def test_random_weights_have_nothing_untrained() -> None:
    with pytest.raises(hookviz.ModelError, match="random already"):
        untrained(hookviz.load_model("shapesnet", "random"))
