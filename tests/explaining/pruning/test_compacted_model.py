"""Networks without the channels that are gone compute what the masked ones do, to 64 bits."""

import random
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune as theirs
from torchvision import models

import hookviz
from hookviz.explaining.pruning import compacted_model
from hookviz.models import user_models
from hookviz.types import Model
from tests.networks import Tiny, as_model, hook_count, plain_network, random_input, seeded
from tests.odd_batches import OnePass
from tests.test_hook_contract import condition


def same_in_double(pruned: Model, small: hookviz.CompactedModel, image: Tensor) -> None:
    """In 64 bits nothing but the order of sums is left, which is 1e-16 or so of them."""
    one, other = (plain_network(each).double()(image.double()) for each in (pruned, small.model))
    torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-12 * float(one.abs().max()) + 1e-15)


def mixed_norms(network: nn.Module) -> nn.Module:
    """A network whose batch norms do something in evaluation mode."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            if module.affine:
                nn.init.uniform_(module.weight, 0.5, 2)
                nn.init.normal_(module.bias)
            assert module.running_mean is not None
            nn.init.normal_(module.running_mean, std=0.1)
    return network


@pytest.mark.parametrize(
    ("name", "removed", "side"),
    [
        ("shapesnet", {"stem.first.conv", *(f"stage{n}.first.conv" for n in (1, 2, 3))}, 64),
        (
            "squeezenet1_1",
            {"features.0", *(f"features.{n}.squeeze" for n in (3, 4, 6, 7, 9, 10, 11, 12))},
            64,
        ),
        ("resnet18", {f"layer{n}.{m}.conv1" for n in (1, 2, 3, 4) for m in (0, 1)}, 64),
    ],
)
def test_networks_of_the_catalog(name: str, removed: set[str], side: int) -> None:
    if name == "shapesnet":
        model = hookviz.load_model(name)
    else:
        network = seeded(lambda: mixed_norms(getattr(models, name)(weights=None, num_classes=10)))
        model = hookviz.wrap(network)
    pruned = hookviz.prune(model, 0.5, "channels by L1 norm")
    image = random_input(1, side)
    small = hookviz.remove_pruned_channels(pruned, image)
    assert small.removed.keys() == removed
    for layer, count in small.removed.items():
        assert small.model.network.get_submodule(layer).out_channels == count  # half of them
    same_in_double(pruned, small, image)
    numbers = [sum(p.numel() for p in one.network.parameters()) for one in (pruned, small.model)]
    assert small.parameters == tuple(numbers)
    assert numbers[1] < 0.8 * numbers[0]
    layers = hookviz.list_layers(small.model, kind="all", input_shape=(3, side, side))
    assert small.multiply_adds[1] == sum(one.multiply_adds * one.calls for one in layers)
    assert small.multiply_adds[1] < 0.7 * small.multiply_adds[0]
    assert min(small.seconds) > 0
    assert small.difference < 1e-5 * float(plain_network(pruned)(image).abs().max())


def any_network(seed: int) -> nn.Module:
    """A sequential network of random layers, sizes and endings."""
    draw = random.Random(seed)
    layers: list[nn.Module] = []
    channels = 3
    for _ in range(draw.randint(1, 4)):
        wide = draw.randint(1, 9)
        layers.append(
            nn.Conv2d(channels, wide, draw.choice((1, 3)), padding=1, bias=draw.random() < 0.5)
        )
        channels = wide
        layers += draw.sample(
            [
                nn.BatchNorm2d(wide),
                nn.BatchNorm2d(wide, affine=False),
                draw.choice((nn.ReLU(True), nn.PReLU(wide), nn.PReLU(), nn.Tanh(), nn.SiLU())),
                draw.choice((nn.MaxPool2d(2, padding=1), nn.AvgPool2d(2), nn.Dropout())),
            ],
            draw.randint(0, 3),
        )
    layers += draw.choice(
        (
            [nn.AdaptiveAvgPool2d(draw.randint(1, 3)), nn.Flatten(), nn.LazyLinear(6)],
            [nn.Conv2d(channels, 6, 1), nn.AdaptiveMaxPool2d(1), nn.Flatten()],
        )
    )
    network = nn.Sequential(*layers)
    network(random_input(0))
    return mixed_norms(network)


@pytest.mark.parametrize("seed", range(25))
def test_any_sequential_network(seed: int) -> None:
    model = as_model(seeded(lambda: any_network(seed)))
    method = ("channels by L1 norm", "random channels")[seed % 2]
    pruned = hookviz.prune(model, (0.3, 0.6, 1)[seed % 3], method, seed=seed)
    try:
        small = hookviz.remove_pruned_channels(pruned)
    except hookviz.ModelError as error:
        convs = [m for m in pruned.network.modules() if isinstance(m, nn.Conv2d)]
        assert len(convs) == 1 or all(conv.out_channels < 3 for conv in convs[:-1])  # rounds to 0
        assert "channel" in str(error)  # noqa: PT017
        return
    same_in_double(pruned, small, random_input(seed))
    assert hookviz.capture(small.model, random_input(0)).logits is not None


def test_channels_that_still_put_out_a_constant_stay(tiny: Model) -> None:
    half = hookviz.prune(tiny, 0.5, "channels by L1 norm", keep_biases=True)
    with pytest.raises(hookviz.ModelError, match="the bias of conv1 makes a constant"):
        hookviz.remove_pruned_channels(half)
    with pytest.raises(hookviz.ModelError, match="no channel to take out"):
        hookviz.remove_pruned_channels(tiny)


def test_what_torch_pruned_itself_can_be_made_smaller() -> None:
    network = seeded(
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 8, 3, bias=False), nn.ReLU(), nn.Conv2d(8, 4, 3)),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
    )
    theirs.ln_structured(network[0], "weight", 0.25, 1, 0)  # type: ignore[no-untyped-call]
    theirs.remove(network[0], "weight")  # type: ignore[no-untyped-call]
    assert hookviz.remove_pruned_channels(as_model(network)).removed == {"0": 2}


def test_the_model_is_as_it_was(tiny: Model) -> None:
    pruned = hookviz.prune(tiny, 0.5, "channels by L1 norm")
    before = condition(pruned.network)
    shares: list[float] = []
    hookviz.remove_pruned_channels(pruned, progress=shares.append)
    assert condition(pruned.network) == before
    assert shares == sorted(shares)

    def cancel(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hookviz.remove_pruned_channels(pruned, progress=cancel)
    assert condition(pruned.network) == before
    assert hook_count(pruned.network) == 0


def test_a_network_that_computes_something_else_is_not_handed_out(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = hookviz.prune(tiny, 0.5, "channels by L1 norm")
    right = compacted_model._kernels_of_zeros
    monkeypatch.setattr(compacted_model, "_kernels_of_zeros", lambda conv: ~right(conv))
    monkeypatch.setattr(
        compacted_model,
        "_stays_zero",
        lambda network, group: right(network.get_submodule(group.conv)) < 2,
    )
    with pytest.raises(hookviz.ModelError, match="puts out something else"):
        hookviz.remove_pruned_channels(pruned)


@pytest.mark.filterwarnings("ignore")  # torch's own, of what is about to go
def test_it_can_be_kept_as_a_program(tmp_path: Path, tiny: Model) -> None:
    small = hookviz.remove_pruned_channels(hookviz.prune(tiny, 0.5, "channels by L1 norm"))
    path = small.save(tmp_path / "small.pt2")
    again = user_models.build(str(path))
    assert [layer.output_shape for layer in hookviz.list_layers(again)] == [
        (2, 16, 16),
        (3, 7, 7),
    ]
    image = random_input(4)
    assert torch.allclose(again.network(image), small.model.network(image), rtol=1e-5, atol=1e-6)
    with pytest.raises(hookviz.ModelError, match=r"does not end in .pt2"):
        small.save(tmp_path / "small.pth")


class WornOut(OnePass):
    """Its first conv layer's channels go to the second alone; what it counts is behind them."""

    def forward(self, images: Tensor) -> Tensor:
        values = self.conv2(self.conv1(images).relu())
        scores: Tensor = self.head(self.between(values).relu().mean((2, 3)))
        return scores


def test_each_pass_of_both_is_a_fresh_networks() -> None:
    pruned = hookviz.prune(as_model(seeded(WornOut)), 0.5, "channels by L1 norm", layers="conv1")
    small = hookviz.remove_pruned_channels(pruned, random_input(0))
    assert small.removed == {"conv1": 3}
    assert small.difference < 1e-6


def test_a_network_that_can_not_be_copied_is_refused(tiny: Model) -> None:
    tiny.network.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(hookviz.ModelError, match=r"Tiny can't be copied: cannot pickle"):
        hookviz.remove_pruned_channels(hookviz.prune(tiny, 0.5, "channels by L1 norm"))


def test_several_inputs_go_with_the_smaller_network_too() -> None:
    class Two(Tiny):
        def forward(self, images: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(images) * scale

    model = hookviz.wrap(seeded(Two), example=(random_input(0), torch.tensor(2.0)))
    pruned = hookviz.prune(model, 0.5, "channels by L1 norm")
    small = hookviz.remove_pruned_channels(pruned, random_input(1))
    assert small.removed == {"conv1": 2, "conv2": 3}
    scores = [hookviz.capture(each, random_input(1)).logits for each in (pruned, small.model)]
    torch.testing.assert_close(*scores)
