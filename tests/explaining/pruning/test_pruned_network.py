import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune as theirs

import hookviz
from hookviz.explaining.pruning.methods import METHODS
from hookviz.explaining.pruning.pruned_network import following_norms
from hookviz.models.derived_models import tensors_of
from hookviz.types import Model
from tests.explaining.pruning.test_methods import pruned_by_torch
from tests.networks import as_model, plain_network, random_input, seeded


class Normed(nn.Module):
    """Each conv with a norm behind it, one of them with a shortcut between the two."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.plain = nn.BatchNorm2d(6, affine=False)
        self.third = nn.Conv2d(6, 6, 3, padding=1)
        self.mixed = nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 5)
        for norm in (self.norm, self.plain, self.mixed):
            norm.running_mean = torch.linspace(-1, 1, 6)
            if norm.affine:
                nn.init.normal_(norm.bias)

    def forward(self, images: Tensor) -> Tensor:
        values = self.norm(self.first(images)).relu()
        values = self.plain(self.second(values)).relu()
        found = self.third(values)
        found += values
        scores: Tensor = self.head(self.mixed(found).mean((2, 3)))
        return scores


@pytest.fixture
def normed() -> Model:
    return as_model(seeded(Normed))


@pytest.mark.parametrize("method", METHODS[:-1])
def test_the_scores_are_those_of_a_network_that_torch_pruned(method: str, normed: Model) -> None:
    image = random_input(1)
    pruned = hookviz.prune(normed, 0.4, method, seed=3, keep_biases=True)
    other = plain_network(normed)
    for name, mask in pruned_by_torch(other, method, 0.4, 3).items():
        theirs.custom_from_mask(other.get_submodule(name), "weight", mask)  # type: ignore[no-untyped-call]
    scores = plain_network(pruned)(image)
    assert torch.equal(scores, other(image))
    assert not torch.equal(scores, plain_network(normed)(image))


def test_a_channel_that_goes_puts_out_nothing(normed: Model) -> None:
    image = random_input(1)
    pruned = hookviz.prune(normed, 0.5, "channels by L2 norm")
    other = plain_network(normed)
    for name, mask in pruned_by_torch(other, "channels by L2 norm", 0.5, 0).items():
        conv, stays = other.get_submodule(name), mask.flatten(1).any(1)
        norm = other.get_submodule("norm")
        parts = [(conv, "weight"), (conv, "bias")]
        if name == "first":
            parts += [(norm, "weight"), (norm, "bias")]
        for part, what in parts:
            keeps = stays.view(-1, 1, 1, 1) if part is conv and what == "weight" else stays
            shape = getattr(part, what).shape
            theirs.custom_from_mask(part, what, keeps.expand(shape))  # type: ignore[no-untyped-call]
        if name == "second":
            other.get_buffer("plain.running_mean").mul_(stays)
    assert torch.equal(plain_network(pruned)(image), other(image))
    captured = hookviz.capture(pruned, image, ["norm", "plain", "mixed"])
    assert [int((captured[n].values == 0).flatten(1).all(1).sum()) for n in ("norm", "plain")] == [
        3,
        3,
    ]
    assert bool(captured["mixed"].values.any((1, 2)).all()), "it has the shortcut's channels too"
    assert following_norms(normed, (3, 16, 16)) == {"first": ["norm"], "second": ["plain"]}


def test_layers_can_be_chosen(tiny: Model) -> None:
    pruned = hookviz.prune(tiny, 0.5, layers="conv2")
    before, after = tensors_of(tiny), tensors_of(pruned)
    assert torch.equal(after["conv1.weight"], before["conv1.weight"])
    weight = after["conv2.weight"]
    assert int((weight == 0).sum()) == weight.numel() // 2
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        hookviz.prune(tiny, 0.5, layers="conv22")
    with pytest.raises(hookviz.ModelError, match="no conv layer"):
        hookviz.prune(tiny, 0.5, layers="head")


def test_by_effect_what_the_image_needs_stays(tiny: Model, noise: Tensor) -> None:
    result = hookviz.prune(tiny, 0.5, "channels by effect", image=noise, layers="conv1")
    scores = plain_network(tiny)(noise)
    changes = []
    for channel in range(4):
        other = plain_network(tiny)
        for part in other.get_submodule("conv1").parameters():
            part[channel] = 0
        changes.append(float((other(noise) - scores).norm()))
    gone = (tensors_of(result)["conv1.weight"] == 0).flatten(1).all(1)
    assert set(gone.nonzero().flatten().tolist()) == set(
        sorted(range(4), key=changes.__getitem__)[:2]
    )
    with pytest.raises(hookviz.SettingError, match="needs an image"):
        hookviz.prune(tiny, 0.5, "channels by effect")


def test_it_is_a_model_of_its_own(tiny: Model, noise: Tensor) -> None:
    before = [(part, part._version, part.clone()) for part in tiny.network.parameters()]
    pruned = hookviz.prune(tiny, 0.25)
    assert pruned.weights == "own, 25 % pruned: smallest weights"
    assert pruned.digest != tiny.digest
    assert pruned.digest == hookviz.prune(tiny, 0.25).digest
    assert hookviz.capture(pruned, noise).logits is not None
    for part, (same, version, values) in zip(tiny.network.parameters(), before, strict=True):
        assert part is same
        assert part._version == version
        assert torch.equal(part, values)
