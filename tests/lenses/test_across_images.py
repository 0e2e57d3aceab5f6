import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.drawing.panels import MapsPanel, TablePanel, TextPanel
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import Model
from tests.codegen.script_cases import PVT, SHAPESNET, ScriptCase
from tests.networks import as_model, random_input, seeded

SCRIPTS = (
    ScriptCase({"images": ("other.png",), "channel": 3}),
    ScriptCase({"layer": "stage1", "images": ()}, SHAPESNET),
    ScriptCase({"layer": "stages.0.blocks.0.norm1", "images": ("other.png",), "channel": 3}, PVT),
)


SLUG = "across-images"


def maps_of(result: LensResult) -> MapsPanel:
    (panel,) = [panel for panel in result.panels if isinstance(panel, MapsPanel)]
    return panel


def test_all_maps_have_the_same_colours_for_the_same_values() -> None:
    conv = nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        conv.weight.zero_()
        conv.weight[1, 0] = 1
        conv.bias.zero_()  # type: ignore[union-attr]
    model = as_model(nn.Sequential(conv))
    images = [torch.full((1, 3, 16, 16), level) for level in (-2.0, 0.0, 1.0)]
    panel = maps_of(hookviz.run_lens(SLUG, model, images[0], images=images[1:], channel=1))
    (lowest, highest, zero) = (each.colours[0, 0].astype(int) for each in panel.maps)
    assert [each.says for each in panel.maps] == ["highest −2.00", "highest 1.00", "highest 0"]
    assert lowest[2] > lowest[0]  # blue
    assert highest[0] > highest[2]  # red, and half as far from white
    assert np.abs(zero - 247).max() <= 2
    assert np.abs(zero - highest).sum() < np.abs(zero - lowest).sum()
    assert "Blue is −2.00, white is zero and red is 2.00 in all of them" in panel.caption
    above = maps_of(hookviz.run_lens(SLUG, model, images[2], images=images[1:2], channel=1))
    assert [each.colours[0, 0].tolist() for each in above.maps] == [[253, 231, 36], [68, 1, 84]]
    assert "Dark violet is 0 and yellow is 1.00" in above.caption


def test_maps_of_several_sizes_are_kept_apart(tiny: Model) -> None:
    images = [random_input(1, 16), random_input(2, 24)]
    result = hookviz.run_lens(SLUG, tiny, images[0], images=images[1:], layer="conv1")
    assert {name for name in result.values if name.startswith("map")} == {"map_0", "map_1"}
    shapes = {result.values[name].shape for name in ("map_0", "map_1")}
    assert shapes == {(16, 16), (24, 24)}
    panel = maps_of(result)
    assert panel.sheet(side=32).shape == (40, 2 * (32 + 32 + 2), 3)


def test_one_image_alone_and_values_that_are_not_finite(tiny: Model) -> None:
    image = random_input(3)
    result = hookviz.run_lens(SLUG, tiny, image, images=(), layer="conv1")
    assert isinstance(result.panels[0], TextPanel)
    assert "Add more images" in result.panels[0].text
    broken = torch.full_like(image, torch.nan)
    result = hookviz.run_lens(SLUG, tiny, broken, images=[image], layer="conv1")
    assert np.isnan(result.values["highest"][0])
    assert np.isfinite(result.values["highest"][1])
    table = next(panel for panel in result.panels if isinstance(panel, TablePanel))
    assert table.rows[0][1] == "NaN"


def test_a_session_s_cache_gives_the_same_maps_without_a_pass() -> None:
    passes: list[int] = []

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if images.device.type != "meta":
                passes.append(len(images))
            found: torch.Tensor = self.conv(images)
            return found

    model, cache = as_model(seeded(Counted)), a_cache()
    images = [random_input(seed) for seed in range(4)]
    runs = []
    for channel in (0, 3):
        passes.clear()
        runs.append(
            hookviz.run_lens(
                SLUG, model, images[0], images=images[1:], channel=channel, cache=cache
            )
        )
    assert passes == []
    for place, name in enumerate(runs[1].values["names"].tolist()):
        seed = 0 if name == "image 1" else int(name.split()[1]) - 1
        alone = hookviz.capture(model, images[seed], "conv")["conv"].values[3]
        np.testing.assert_array_equal(runs[1].values["maps"][place], alone)


def a_cache() -> ByteCache:
    return Budget(1 << 24).cache(1 << 24)


def test_what_does_not_work_is_said(tiny: Model) -> None:
    with pytest.raises(hookviz.SettingError, match=r"channel=4 is not a channel of conv1.* 0 to 3"):
        hookviz.run_lens(SLUG, tiny, random_input(0), images=(), layer="conv1", channel=4)
    with pytest.raises(hookviz.SettingError, match="head"):
        hookviz.run_lens(SLUG, tiny, random_input(0), images=(), layer="head")
