import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune as theirs

import hookviz
from hookviz.explaining.pruning.pruned_network import METHODS, OF_CHANNELS, Pruning, following_norms
from hookviz.models.derived_models import tensors_of
from hookviz.types import Model
from tests.networks import as_model, plain_network, random_input, seeded

SHARES = (0, 0.05, 0.25, 0.5, 0.95, 1)


def convs(network: nn.Module, kind: type[nn.Module] = nn.Conv2d) -> dict[str, nn.Module]:
    return {name: part for name, part in network.named_modules() if isinstance(part, kind)}


def pruned_by_torch(
    network: nn.Module, method: str, share: float, seed: int, kind: type[nn.Module] = nn.Conv2d
) -> dict[str, Tensor]:
    """The masks of `torch.nn.utils.prune`."""
    copied = convs(copy.deepcopy(network), kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if method == "smallest weights":
            pairs = [(module, "weight") for module in copied.values()]
            theirs.global_unstructured(pairs, theirs.L1Unstructured, amount=float(share))
        elif method == "random weights":
            pairs = [(module, "weight") for module in copied.values()]
            theirs.global_unstructured(pairs, theirs.RandomUnstructured, amount=float(share))
        for module in copied.values() if method in OF_CHANNELS else ():
            if method == "random channels":
                theirs.random_structured(module, "weight", float(share), 0)  # type: ignore[no-untyped-call]
            else:
                n = int(method[len("channels by L")])
                theirs.ln_structured(module, "weight", float(share), n, 0)  # type: ignore[no-untyped-call]
    return {name: module.get_buffer("weight_mask").bool() for name, module in copied.items()}


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("share", SHARES)
def test_the_masks_are_those_of_torch(method: str, share: float) -> None:
    builds: tuple[Callable[[], nn.Module], ...] = (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 5), nn.Conv2d(16, 40, 3, groups=2)),
        lambda: nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 40)),
    )
    for build, kind in zip(builds, (nn.Conv2d, nn.Linear), strict=True):
        network = seeded(build)
        ours = Pruning(network, dict(network.named_modules()), method, seed=5).masks(share)
        expected = pruned_by_torch(network, method, share, 5, kind)
        assert ours.keys() == expected.keys()
        for name, mask in expected.items():
            assert torch.equal(ours[name], mask), name


def test_every_number_of_channels_is_rounded_as_torch_does() -> None:
    for channels in (1, 2, 3, 5, 10):
        network = seeded(lambda: nn.Sequential(nn.Conv2d(3, channels, 2)))  # noqa: B023 - now
        for share in torch.linspace(0, 1, 9).tolist():
            for method in OF_CHANNELS[:-1]:
                ours = Pruning(network, ["0"], method, seed=1).masks(share)["0"]
                assert torch.equal(ours, pruned_by_torch(network, method, share, 1)["0"])


def test_channels_of_a_transposed_convolution_stay_and_weights_in_common_count_once() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 2), nn.ConvTranspose2d(4, 3, 2))
    assert Pruning(network, ["0", "1"], "channels by L1 norm").weights.keys() == {"0"}
    assert Pruning(network, ["0", "1"]).count == 4 * 3 * 4 + 4 * 3 * 4
    with pytest.raises(hookviz.ModelError, match="no conv layer with weights of its own"):
        Pruning(network, ["1"], "random channels")
    network = nn.Sequential(nn.Conv2d(3, 3, 2), nn.Conv2d(3, 3, 2))
    network[1].weight = network[0].weight
    assert Pruning(network, ["0", "1"]).count == 3 * 3 * 4


def test_what_means_nothing_is_refused() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 2))
    with pytest.raises(hookviz.SettingError, match="no method of pruning called 'channels by L3"):
        Pruning(network, ["0"], "channels by L3 norm")
    with pytest.raises(hookviz.SettingError, match="from 0 to 1"):
        Pruning(network, ["0"]).masks(50)
    with pytest.raises(hookviz.SettingError, match="effects go with"):
        Pruning(network, ["0"], "channels by effect")


def test_random_weights_of_complex_layers_go_as_those_of_real_ones_do() -> None:
    real = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1))
    imaginary = nn.Sequential(*(nn.Conv2d(4, 4, 1, dtype=torch.complex64), nn.Conv2d(3, 4, 3)))
    for network in (real, imaginary):
        masks = Pruning(network, ["0", "1"], "random weights", seed=3).masks(0.25)
        drawn = torch.rand(124, generator=torch.Generator().manual_seed(3))
        goes = drawn.topk(31).indices
        stays = torch.ones(124, dtype=torch.bool)
        stays[goes] = False
        assert torch.equal(torch.cat([mask.flatten() for mask in masks.values()]), stays)


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
