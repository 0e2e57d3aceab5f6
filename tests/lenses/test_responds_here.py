from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import TextPanel
from hookviz.images.samples import samples
from hookviz.types import Model
from tests.codegen.script_cases import PVT, SHAPESNET, SQUEEZENET, ScriptCase
from tests.networks import as_model, random_input

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"layer": "stage2", "region": "brush:6x4:3.2.4.6.1.3"}, SHAPESNET),
    ScriptCase({"layer": "features.3", "region": "rect:0.5,0.9,0.13,0.21"}, SQUEEZENET),
    ScriptCase({"layer": "stages.0.blocks.0.norm1", "region": "rect:0.5,0.9,0.13,0.21"}, PVT),
)


SLUG = "responds-here"


def scores(maps: NDArray[np.float32], marked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The difference of means in deviations, with as many copies of a cell as it has pixels."""
    down, across = marked.shape[0] // maps.shape[1], marked.shape[1] // maps.shape[2]
    pixels = maps.repeat(down, 1).repeat(across, 2).astype(np.float64)
    inside, outside = pixels[:, marked].mean(1), pixels[:, ~marked].mean(1)
    score: NDArray[np.float64] = (inside - outside) / maps.astype(np.float64).std((1, 2))
    return score


@pytest.mark.parametrize("layer", ["stem.first.conv", "stage1", "stage2.relu", "stage3.relu_out"])
def test_it_is_what_counting_pixels_gives(layer: str) -> None:
    model = hookviz.load_model("shapesnet")
    image = next(sample.path for sample in samples() if sample.name == "star")
    maps = hookviz.capture(model, image, layer)[layer].values.numpy()
    marked = np.zeros((128, 128), bool)
    marked[20:77, 31:90] = True
    text = f"rect:{31 / 128},{20 / 128},{90 / 128},{77 / 128}"
    painted = np.random.default_rng(0).random((128, 128)) < 0.3
    for mask, region in ((marked, marked), (marked, text), (painted, painted)):
        expected = scores(maps, mask)
        result = hookviz.run_lens(SLUG, model, image, layer=layer, region=region)
        np.testing.assert_allclose(result.values["score"], expected, rtol=1e-9, atol=1e-12)
        assert result.values["ranking"][0] == expected.argmax()


def colours() -> nn.Module:
    """Channels for red, green and blue, one that is the same everywhere, and a ReLU."""
    conv = nn.Conv2d(3, 4, 1)
    with torch.no_grad():
        conv.weight.zero_()
        conv.weight[range(3), range(3), 0, 0] = 1
        conv.bias.copy_(torch.tensor([0.0, 0, 0, 0.1]))  # type: ignore[union-attr]
    return nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.fixture
def patches() -> Tensor:
    """Red in the upper left quarter, green at the right, blue below; the rest is black."""
    image = torch.zeros(1, 3, 16, 16)
    image[0, 0, :8, :8] = 1
    image[0, 1, :, 8:] = 1
    image[0, 2, 8:, :8] = 1
    return image


@pytest.mark.parametrize("layer", ["0", "1"], ids=["conv", "relu"])
def test_the_right_channel_of_hand_made_kernels_is_found(layer: str, patches: Tensor) -> None:
    model = as_model(colours())
    for channel, region in (
        (0, "rect:0,0,0.5,0.5"),
        (1, "rect:0.6,0.2,0.9,0.4"),
        (2, "rect:0.01,0.99,0.02,1"),
    ):
        result = hookviz.run_lens(SLUG, model, patches, layer=layer, region=region)
        assert result.values["ranking"][0] == channel
        assert result.values["inside"][channel] == pytest.approx(1)
        assert result.values["score"][3] == 0  # every cell alike, whatever its rounding
    result = hookviz.run_lens(SLUG, model, patches, layer=layer, region="rect:0,0,0.5,0.5")
    panels: Any = result.panels
    _, says, chart, grid, table = panels
    assert says.text.startswith(f"Channel 0 of {layer} answers most: 1.00 on average inside")
    assert "nothing at all outside" in says.text
    assert "25.0 % of the picture is marked, which is 64.0 of the 16×16 cells" in says.text
    assert chart.labels == ("0", "3", "2", "1")
    assert chart.layer == grid.layer == layer
    assert grid.grid.order.tolist() == [0, 3, 2, 1]
    assert [row[5] for row in table.rows] == ["∞", "1.00", "–", "–"]


def test_of_signed_maps_no_ratio_is_told(tiny: Model) -> None:
    result = hookviz.run_lens(SLUG, tiny, random_input(1), layer="conv1")
    table: Any = result.panels[4]
    assert {row[5] for row in table.rows} == {"–"}


def test_a_region_within_one_cell_is_that_cell(tiny: Model) -> None:
    maps = hookviz.capture(tiny, random_input(2), "conv2")["conv2"].values.numpy()  # 7×7
    result = hookviz.run_lens(
        SLUG, tiny, random_input(2), layer="conv2", region="rect:0.30,0.45,0.31,0.46"
    )
    np.testing.assert_allclose(result.values["inside"], maps[:, 3, 2], rtol=1e-6)
    assert np.isfinite([result.values[name] for name in ("outside", "deviation", "score")]).all()


def test_values_that_are_not_finite_do_not_count(tiny: Model) -> None:
    broken = random_input(3)
    broken[0, :, 2, 2] = torch.nan
    result = hookviz.run_lens(SLUG, tiny, broken, layer="conv1", region="rect:0,0,0.5,0.5")
    maps = hookviz.capture(tiny, broken, "conv1")["conv1"].values.numpy()
    np.testing.assert_allclose(result.values["inside"], np.nanmean(maps[:, :8, :8], (1, 2)), 1e-6)
    only = hookviz.run_lens(SLUG, tiny, broken, layer="conv1", region="rect:.14,.14,.16,.16")
    assert np.isnan(only.values["score"]).all()
    assert isinstance(only.panels[0], TextPanel)
    assert only.panels[0].tone == "bad"


def test_what_can_not_be_asked_is_said(tiny: Model) -> None:
    with pytest.raises(hookviz.HookVizError, match="no outside to compare with"):
        hookviz.run_lens(SLUG, tiny, random_input(0), region="rect:0,0,1,1")
    pooled = as_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1)))
    with pytest.raises(hookviz.HookVizError, match="maps of one cell"):
        hookviz.run_lens(SLUG, pooled, random_input(0), layer="1")
