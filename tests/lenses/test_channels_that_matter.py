import copy
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import TextPanel
from hookviz.explaining.patching import part_changes
from hookviz.types import Model
from tests.codegen.script_cases import (
    RESNET,
    SHAPESNET,
    SHAPESVIT,
    SQUEEZENET,
    ScriptCase,
)
from tests.networks import as_model, random_input, seeded
from tests.tally import Tally

SCRIPTS = (  # here a pass for each channel
    ScriptCase({"layer": "stage1.first.conv"}, SHAPESNET, 1e-5),
    ScriptCase({"layer": "features.6.squeeze"}, SQUEEZENET, 1e-5),
    ScriptCase({"layer": "layer1.0.conv2"}, RESNET, 1e-4),  # of scores that are larger by far
    ScriptCase({"layer": "layer1.0.conv2", "of": "a channel: which classes", "channel": 3}, RESNET),
    ScriptCase({"layer": "blocks.2.mlp.fc2"}, SHAPESVIT, 1e-5),
    ScriptCase({"layer": "blocks.1.attn.qkv", "of": "a channel: which classes"}, SHAPESVIT),
)


class Counted(nn.Module):
    """Counts the images of every pass, over all copies."""

    batches: ClassVar[Tally]

    def __init_subclass__(cls) -> None:
        cls.batches = Tally()

    def count(self, images: Tensor) -> None:
        self.batches.append(len(images))


class Block(Counted):
    """A residual block, whose addition writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.conv = nn.Conv2d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.norm.running_mean = torch.linspace(-1, 1, 6)
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        self.count(images)
        identity = self.stem(images).relu_()
        found = self.norm(self.conv(identity))
        found += identity
        scores: Tensor = self.head(found.relu_().mean((2, 3)))
        return scores


class WrittenInto(Block):
    """Adds to a tensor in place and goes on with that tensor, which can't grow."""

    def forward(self, images: Tensor) -> Tensor:
        self.count(images)
        stem = self.stem(images)
        found = self.conv(stem)
        stem.add_(found)
        scores: Tensor = self.head(stem.mean((2, 3)))
        return scores


class OneImage(Block):
    """Takes one image alone."""

    def forward(self, images: Tensor) -> Tensor:
        assert len(images) == 1
        found = super().forward(images)
        return self.head.bias + found.reshape(5)[None]


class Twice(Block):
    """Runs the layer two times."""

    def forward(self, images: Tensor) -> Tensor:
        self.count(images)
        scores: Tensor = self.head(self.conv(self.conv(self.stem(images)).relu_()).mean((2, 3)))
        return scores


def trace(network: nn.Module, image: Tensor) -> hookviz.Model:
    """The model, of which it is known what a pass runs."""
    model = as_model(network)
    hookviz.list_layers(model, input_shape=tuple(image.shape[1:]))
    return model


def without(network: nn.Module, channel: int) -> nn.Module:
    """A copy whose filter of that channel is zero, and its bias too."""
    copied = copy.deepcopy(network)
    assert isinstance(copied.conv, nn.Conv2d)
    assert copied.conv.bias is not None
    with torch.no_grad():
        copied.conv.weight[channel] = 0
        copied.conv.bias[channel] = 0
    return copied


@pytest.mark.parametrize(
    ("build", "more"),
    [
        (Block, []),
        (Twice, []),
        (WrittenInto, [8]),
        (OneImage, [1] * 8),
    ],
)
def test_it_is_what_one_by_one_gives(build: type[Block], more: list[int]) -> None:
    network, image = seeded(build).eval(), random_input(3)
    model = trace(network, image)
    build.batches.clear()
    result = hookviz.run_lens("channels-that-matter", model, image, layer="conv", target=1)
    # The classes, the maps, either half, one image that grows; then what else it took, where a
    # pass that fails runs once more to say at which layer, and zeros run once to say which size.
    assert build.batches == [1, 1, 1, 1, 1, *more]
    with torch.no_grad():
        before = network(image)[0]
        after = torch.stack([without(network, each)(image)[0] for each in range(6)])
    np.testing.assert_allclose(
        result.values["logit_change"], after[:, 1] - before[1], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        result.values["probability_change"],
        (after.softmax(1) - before.softmax(0))[:, 1],
        rtol=1e-4,
        atol=1e-6,
    )
    assert np.ptp(result.values["logit_change"]) > 1e-3


def test_a_small_room_makes_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    network, image = seeded(Block).eval(), random_input(3)
    whole = hookviz.run_lens("channels-that-matter", as_model(network), image, layer="conv")
    monkeypatch.setattr(part_changes, "_MAX_BATCH_BYTES", 4 * 4 * (6 * 16 * 16 * 4))
    model = trace(network, image)
    Block.batches.clear()
    told: list[float] = []
    small = hookviz.run_lens(
        "channels-that-matter", model, image, layer="conv", progress=told.append
    )
    assert len(Block.batches) == 1 + 1 + 2 + 2  # classes, whole, either half, rows of 4 and 2
    np.testing.assert_allclose(
        small.values["logit_change"], whole.values["logit_change"], rtol=1e-4, atol=1e-6
    )
    assert len(told) > len(Block.batches)
    assert 0 < min(told) <= max(told) == 1


def test_the_panels_name_the_channel_that_matters_most(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("channels-that-matter", tiny, noise, layer="conv2", target=0)
    changes = result.values["logit_change"]
    most = int(np.abs(changes).argmax())
    panels: Any = result.panels
    _, says, chart, grid, table = panels
    assert f"channel {most} changes the score of class 0 most" in says.text
    assert grid.grid.order[0] == most
    ranked = sorted(
        (each for each in range(6) if abs(changes[each]) > 1e-4), key=changes.__getitem__
    )
    assert [row[0] for row in table.rows] == ranked
    assert chart.labels == tuple(map(str, ranked))
    # Above 0, red, is for the class: as in the lesson on votes, and as (score − score without it).
    np.testing.assert_array_equal(chart.series["fall of the score"], -changes[ranked])
    assert len(grid.grid.png()) > 100
    assert grid.grid.channel_png(most)


def test_the_channel_that_lowers_the_probability_most_is_named_beside_that_of_the_score() -> None:
    """Where others' scores move as well, it need not be the one whose score changes most."""
    model = hookviz.load_model("shapesnet")
    image = hookviz.capture(model, "assets/samples/cat.jpg", "stem.first.conv").model_input
    apart = 0
    for target in range(5):
        result = hookviz.run_lens(
            "channels-that-matter", model, image, layer="stage1.first.conv", target=target
        )
        says, change = result.panels[1], result.values["probability_change"]
        assert isinstance(says, TextPanel)
        lowers, most = int(change.argmin()), int(np.abs(result.values["logit_change"]).argmax())
        told = f"probability falls most without channel {lowers}:" in says.text
        assert told == (lowers != most)
        apart += told
    assert apart > 0


def test_a_dead_layer_says_that_nothing_matters(noise: Tensor) -> None:
    network = seeded(Block).eval()
    with torch.no_grad():
        network.head.weight.zero_()
    result = hookviz.run_lens("channels-that-matter", as_model(network), noise)
    says: Any = result.panels[0]
    assert "No channel of conv alone moves" in says.text
    assert not result.values["logit_change"].any()


def test_scores_that_are_no_numbers_are_refused(noise: Tensor) -> None:
    network = seeded(Block).eval()
    network.head.bias.detach()[0] = torch.nan
    with pytest.raises(hookviz.ModelError, match="The lens health says"):
        hookviz.run_lens("channels-that-matter", as_model(network), noise)
