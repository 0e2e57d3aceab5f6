import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.drawing.panels import TextPanel
from hookviz.types import Model
from tests.codegen.script_cases import (
    CONVNEXT,
    RESNET,
    SHAPESNET,
    SHAPESVIT,
    SQUEEZENET,
    ScriptCase,
)
from tests.networks import Tiny, as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone, silenced
from tests.pictures import picture

SCRIPTS = (
    ScriptCase(),
    ScriptCase(
        {"mode": "keep only", "channels": "1, 3-5", "downstream": "stage3.first.conv"},
        SHAPESNET,
    ),
    ScriptCase({"mode": "scale", "channels": "0, 2", "factor": -1.5}, RESNET),
    ScriptCase({"mode": "threshold", "limit": 0.3}, SHAPESNET),
    ScriptCase({"mode": "threshold", "limit": 0.1, "channels": "0-9"}, SQUEEZENET),
    ScriptCase({"layer": "blocks.1.mlp.fc1"}, SHAPESVIT),
    ScriptCase({"layer": "features.1.0.block.3", "mode": "threshold", "limit": 0.1}, CONVNEXT),
)


close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)


def refiltered(network: nn.Module, change: Callable[[nn.Conv2d], None]) -> nn.Module:
    """A copy whose conv1 has other filters: scaling a filter and its bias scales its channel."""
    copied = copy.deepcopy(network)
    assert isinstance(copied.conv1, nn.Conv2d)
    with torch.no_grad():
        change(copied.conv1)
    return copied


def times(factors: list[float]) -> Callable[[nn.Conv2d], None]:
    def change(conv: nn.Conv2d) -> None:
        assert conv.bias is not None
        conv.weight *= torch.tensor(factors)[:, None, None, None]
        conv.bias *= torch.tensor(factors)

    return change


@pytest.mark.parametrize(
    ("options", "factors"),
    [
        ({"mode": "switch off", "channels": "1, 3"}, [1.0, 0, 1, 0]),
        ({"mode": "keep only", "channels": "1, 3"}, [0.0, 1, 0, 1]),
        ({"mode": "scale", "channels": "0-1", "factor": -1.5}, [-1.5, -1.5, 1, 1]),
    ],
)
def test_it_does_what_other_filters_would_do(
    tiny: Model, noise: Tensor, options: dict[str, Any], factors: list[float]
) -> None:
    result = hookviz.run_lens("ablate", tiny, noise, layer="conv1", **options)
    other: Any = refiltered(tiny.network, times(factors))
    with torch.no_grad():
        maps = other.conv1(noise)
        next_maps = other.conv2(maps.relu())
        logits = other(noise)
        old = tiny.network(noise)
    close(result.values["after"], maps[0])
    close(result.values["downstream_after"], next_maps[0])
    close(result.values["logits_after"], logits[0])
    close(result.values["logits_before"], old[0])
    close(result.values["probabilities_after"], logits.softmax(1)[0])


@pytest.mark.parametrize(("channels", "chosen"), [("", [0, 1, 2, 3]), ("2", [2])])
def test_a_threshold_zeroes_what_is_weak(
    tiny: Model, noise: Tensor, channels: str, chosen: list[int]
) -> None:
    result = hookviz.run_lens(
        "ablate", tiny, noise, layer="conv1", mode="threshold", limit=0.3, channels=channels
    )
    network: Any = tiny.network
    with torch.no_grad():
        expected = network.conv1(noise).numpy()[0]
    for channel in chosen:
        expected[channel][np.abs(expected[channel]) <= 0.3] = 0
    np.testing.assert_array_equal(result.values["after"], expected)
    assert (expected == 0).any()
    says: Any = result.panels[1]
    share = 100 * (expected[chosen] == 0).mean()
    assert f"{share:.1f} % of them changed" in says.text


def test_without_channels_the_strongest_is_switched_off(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("ablate", tiny, noise, layer="conv2")
    before = result.values["before"]
    strongest = int(np.abs(before).mean((1, 2)).argmax())
    assert result.values["channels"].tolist() == [strongest]
    says: Any = result.panels[1]
    assert f"channel {strongest}, the strongest" in says.text
    assert "downstream_after" not in result.values  # there is no conv layer behind it


def test_a_layer_that_runs_twice_is_edited_each_time() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 3, 3, padding=1)
            self.head = nn.Linear(3, 4)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.head(self.conv1(self.conv1(images).relu_()).mean((2, 3)))
            return scores

    network, image = seeded(Twice), random_input(1)
    result = hookviz.run_lens("ablate", as_model(network), image, channels="2")
    with torch.no_grad():
        expected = refiltered(network, times([1.0, 1, 0]))(image)[0]
    close(result.values["logits_after"], expected)
    with torch.no_grad():
        first = network.conv1(image)[0]
    first[2] = 0
    close(result.values["after"], first)
    says: Any = result.panels[1]
    assert "Each of its 2 calls is edited" in says.text


def test_a_batch_norm_that_runs_next_is_named() -> None:
    network = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
    ).eval()
    says: Any = hookviz.run_lens("ablate", as_model(network), random_input(0)).panels[1]
    assert "1 runs next and makes a constant" in says.text


def test_a_layer_before_the_edit_is_unchanged_and_says_so(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("ablate", tiny, noise, layer="conv2", downstream="conv1")
    last: Any = result.panels[-1]
    assert "unchanged" in last.caption


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"channels": "2, 4"}, "conv1 has no channel 4: its channels are 0 to 3"),
        ({"downstream": "conv1"}, "'conv2', the next one"),
    ],
)
def test_what_means_nothing_is_refused(
    tiny: Model, noise: Tensor, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(hookviz.SettingError, match=says):
        hookviz.run_lens("ablate", tiny, noise, layer="conv1", **options)


@pytest.mark.parametrize("mode", ["switch off", "keep only", "scale", "threshold"])
def test_a_layer_without_a_batch_is_edited_like_any_other(mode: str) -> None:
    class Squeezed(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            found = self.conv2(self.relu(self.conv1(images)).squeeze(0)).relu()
            scores: Tensor = self.head(found.mean((-2, -1)).reshape(1, -1))
            return scores

    image = random_input(1)
    for layer in ("conv1", "conv2"):
        squeezed, plain = (
            hookviz.run_lens(
                "ablate", as_model(seeded(kind)), image, layer=layer, channels="1", mode=mode
            )
            for kind in (Squeezed, Tiny)
        )
        assert squeezed.values["after"].shape == plain.values["after"].shape
        for name in ("before", "after", "logits_after"):
            np.testing.assert_allclose(
                squeezed.values[name], plain.values[name], rtol=1e-5, atol=1e-6
            )


def test_what_a_relu_cuts_anyway_is_said_and_nothing_else() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 3)
    network = nn.Sequential(
        *(conv, nn.ReLU(inplace=True), nn.Conv2d(4, 6, 3), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5)),
    )
    with torch.no_grad():
        conv.bias = nn.Parameter(torch.tensor([-100.0, 0.0, -100.0, 5.0]))
    model = as_model(network)
    made = prepare_input(model, picture())
    after_relu = network[:2](made.tensor)[0]
    for channels in ([0], [1], [3], [0, 2], [0, 3]):
        result = hookviz.run_lens("ablate", model, made, layer="0", channels=channels)
        said = [panel.text for panel in result.panels if isinstance(panel, TextPanel)]
        dead = not after_relu[channels].any()
        unchanged = np.array_equal(result.values["logits_before"], result.values["logits_after"])
        assert unchanged == dead
        assert any("1 (ReLU) had cut" in text for text in said) == dead, said
    assert not after_relu[[0, 2]].any()
    assert after_relu[3].any()


@pytest.mark.parametrize("kind", ODD)
@torch.no_grad()
def test_both_passes_are_a_fresh_networks(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    result = hookviz.run_lens(
        "ablate", as_model(network), image, layer="conv1", mode="switch off", channels="2"
    )
    close(result.values["logits_before"], alone(network, image)[0])
    close(result.values["logits_after"], alone(silenced(network, "conv1", 2), image)[0])
