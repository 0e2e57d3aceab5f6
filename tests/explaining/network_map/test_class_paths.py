"""What a class needs, against plain hooks and autograd by hand in float64."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.network_map.class_paths import ClassPaths, class_paths, shares_of
from hookviz.explaining.network_map.followed_pass import IMAGE
from hookviz.explaining.network_map.layout import network_map, shares_along
from hookviz.types import ActivationKey, Model
from tests.networks import as_model, seeded


class Joined(nn.Module):
    """A branch that is written into by an addition, and a concatenation of it with another."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.block = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 1))
        self.side = nn.Conv2d(4, 2, 1)
        self.drop = nn.Dropout()
        self.last = nn.Conv2d(6, 5, 3)
        self.head = nn.Linear(5, 3)

    def forward(self, images: Tensor) -> Tensor:
        stem = self.stem(images)
        out = self.drop(self.block(stem))
        out += stem
        both = torch.cat([out, self.side(stem)], 1)
        scores: Tensor = self.head(torch.relu_(self.last(both)).mean((2, 3)))
        return scores


CLASS = 1


@pytest.fixture(scope="module")
def model() -> Model:
    network = seeded(Joined).double().eval()
    for name, values in network.named_parameters():
        if name == "block.0.bias":  # so that the norm changes signs
            nn.init.uniform_(values, -1, 1, torch.Generator().manual_seed(3))
    return as_model(network)


@pytest.fixture(scope="module")
def image() -> Tensor:
    return torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(1)).double()


@pytest.fixture(scope="module")
def paths(model: Model, image: Tensor) -> ClassPaths:
    return class_paths(model, prepare_input(model, image), CLASS)


@pytest.fixture(scope="module")
def known(model: Model, image: Tensor) -> dict[str, Tensor]:
    """The pass written out: all tensors by name, each branch as a tensor of its own."""
    net: Any = model.network
    x = image.to(next(net.parameters()).dtype).requires_grad_()
    stem = net.stem(x)
    main, short, aside = (stem.view_as(stem) for _ in range(3))
    norm = net.block[0](main)
    relu = torch.relu(norm)
    conv = net.block[2](relu)
    total = conv + short
    out = total.view_as(total)
    side = net.side(aside)
    both = torch.cat([out, side], 1)
    last = net.last(both)
    score = net.head(torch.relu(last).mean((2, 3)))[0, CLASS]
    return {name: each for name, each in locals().items() if isinstance(each, Tensor)}


def passed(known: dict[str, Tensor], name: str, of: Tensor | None = None) -> Tensor:
    """Gradient × value by channel, of the score or another number."""
    value = known["score"] if of is None else of
    (gradient,) = torch.autograd.grad(value, known[name], retain_graph=True)
    return (gradient * known[name]).detach().sum((0, 2, 3))


def number_of(paths: ClassPaths, name: str) -> int:
    return [str(step.address) for step in paths.trace.steps].index(name) + 1


def test_channels_have_their_gradient_times_value_and_the_network_stays(
    model: Model, paths: ClassPaths, known: dict[str, Tensor]
) -> None:
    assert all(each.grad is None for each in model.network.parameters())
    assert not any(each._forward_hooks for each in model.network.modules())
    assert paths.score == pytest.approx(float(known["score"].detach()))
    names = {"stem": "stem", "block.0": "norm", "block.1": "relu", "block.2": "conv"}
    names |= {"add": "total", "side": "side", "cat": "both", "last": "last"}
    for step, name in names.items():
        found = paths.steps[number_of(paths, step)]
        torch.testing.assert_close(found, passed(known, name), rtol=1e-6, atol=1e-12)
    torch.testing.assert_close(paths.blocks[ActivationKey("block")], passed(known, "conv"))
    assert float(shares_of(found).sum()) == pytest.approx(1)
    assert not bool(shares_of(-found.abs()).any())


def test_lines_into_a_join_have_what_came_along_them(
    paths: ClassPaths, known: dict[str, Tensor]
) -> None:
    above = {
        name: float(passed(known, name).clamp(min=0).sum())
        for name in ("out", "side", "conv", "short")
    }
    cat, add, side, stem, drop, norm = (
        number_of(paths, name) for name in ("cat", "add", "side", "stem", "drop", "block.0")
    )
    left = above["out"] / (above["out"] + above["side"])
    main = above["conv"] / (above["conv"] + above["short"])
    expected = {
        (add, cat): left,
        (side, cat): 1 - left,
        (drop, add): left * main,
        (stem, add): left * (1 - main),
        (stem, norm): left * main,
        (stem, side): 1 - left,
        (IMAGE, stem): 1.0,
        (number_of(paths, "head"), None): 1.0,
    }
    assert 0 < left < 1
    assert 0 < main < 1
    for line, share in expected.items():
        assert paths.lines[line] == pytest.approx(share)


def test_the_map_s_lines_have_what_goes_along_them(paths: ClassPaths) -> None:
    whole = network_map(paths.trace, "Joined")
    drawn = shares_along(whole, paths.lines)
    assert {at: set(each) for at, each in drawn.items()} == {
        part.address: set(part.lines) for part in (whole, *whole.parts) if part.parts
    }
    names = [str(part.address) for part in whole.parts]
    stem, block, side = (names.index(name) for name in ("stem", "block", "side"))
    out = {end: share for (begin, end), share in drawn[whole.address].items() if begin == stem}
    assert sum(out.values()) == pytest.approx(1)
    inside = drawn[ActivationKey("block")]
    assert [*inside.values()] == pytest.approx([out[block]] * 4)
    assert out[side] == pytest.approx(
        paths.lines[number_of(paths, "stem"), number_of(paths, "side")]
    )


def test_ways_go_back_to_what_adds_most(paths: ClassPaths, known: dict[str, Tensor]) -> None:
    last = passed(known, "last")
    order = last.argsort(descending=True).tolist()
    above = [channel for channel in order if last[channel] > 0][:3]
    assert len(paths.channel_paths) == len(above) > 1
    for way, channel in zip(paths.channel_paths, above, strict=True):
        assert way[-1].step == number_of(paths, "last")
        assert way[-1].channel == channel
        assert way[-1].share == pytest.approx(float(last[channel] / last.clamp(min=0).sum()))
        (gradient,) = torch.autograd.grad(known["score"], known["last"], retain_graph=True)
        part = (gradient.detach() * known["last"])[0, channel].sum()
        before = torch.cat([passed(known, "out", part), passed(known, "side", part)])
        best = int(before.argmax())
        assert way[-2].step == number_of(paths, "cat")
        assert way[-2].channel == best
        joined = ("add", best) if best < 4 else ("side", best - 4)
        assert (way[-3].step, way[-3].channel) == (number_of(paths, joined[0]), joined[1])
        assert way[0].step == number_of(paths, "stem")


def test_a_class_whose_weights_are_zero_has_no_ways(image: Tensor) -> None:
    network = seeded(Joined)
    nn.init.zeros_(network.head.weight)
    model = as_model(network.eval())
    paths = class_paths(model, prepare_input(model, image.float()), CLASS)
    assert paths.channel_paths == ()
    assert paths.lines[number_of(paths, "side"), number_of(paths, "cat")] == 0
