from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.charts import chart_figure
from hookviz.drawing.panels import ChartPanel, TextPanel
from hookviz.drawing.statistics import BINS
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import Model
from tests.codegen.script_cases import CONVNEXT, SHAPESNET, ScriptCase
from tests.networks import Tiny, as_model, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"layer": "stage2.second.conv"}, SHAPESNET),
    ScriptCase(networks=CONVNEXT),
)


def texts(result: LensResult) -> tuple[TextPanel, TextPanel]:
    panels: Any = result.panels[1:3]
    first, second = panels
    return first, second


def rows(result: LensResult) -> dict[str, tuple[str | int | float, ...]]:
    table: Any = result.panels[-1]
    return {str(row[0]): row for row in table.rows}


@pytest.fixture
def network() -> Tiny:
    return seeded(Tiny)


def bias(layer: nn.Conv2d | nn.Linear) -> Tensor:
    assert layer.bias is not None
    return layer.bias.detach()


def test_numbers_of_a_sound_network_are_those_of_each_layer(network: Tiny, noise: Tensor) -> None:
    result = hookviz.run_lens("health", as_model(network), noise)
    with torch.no_grad():  # by hand, out of place
        first = network.conv1(noise)
        second = network.conv2(first.relu())
        outputs = [first, first.relu(), second, second.relu()]
        outputs.append(network.head(outputs[3].mean((2, 3))))
    assert list(rows(result)) == ["conv1", "relu", "conv2", "relu, call 2", "head"]
    largest = [float(each.abs().max()) for each in outputs]
    np.testing.assert_allclose(result.values["largest"], largest, rtol=1e-5)
    np.testing.assert_allclose(result.values["growth"][1], outputs[1].max() / largest[0], rtol=1e-5)
    np.testing.assert_allclose(result.values["growth"][2], largest[2] / largest[1], rtol=1e-5)
    assert not result.values["nan"].any()
    assert not result.values["inf"].any()
    assert result.values["units"].tolist() == [4, 4, 6, 6, 5]
    dead = [int((each[0].flatten(1) == 0).all(1).sum()) for each in outputs[:4]]
    assert result.values["dead"].tolist() == [*dead, 0]
    first_text, _ = texts(result)
    assert first_text.tone == "good"
    assert "5 outputs of 4 layers" in first_text.text
    # the last conv layer's histogram, before the ReLU writes over it
    expected, edges = np.histogram(second.numpy().astype(np.float64), BINS)
    np.testing.assert_array_equal(result.values["histogram"], expected)
    np.testing.assert_allclose(result.values["edges"], edges)


def test_a_nan_weight_is_found_in_its_layer(network: Tiny, noise: Tensor) -> None:
    network.conv2.weight.detach()[1, 0, 0, 0] = torch.nan
    result = hookviz.run_lens("health", as_model(network), noise)
    says, _ = texts(result)
    assert says.tone == "bad"
    assert "conv2 (Conv2d) is the first layer with 49 NaN of 294 numbers" in says.text
    assert "Its own weight has NaN" in says.text
    assert "2 later outputs" in says.text
    assert result.values["nan"].tolist() == [0, 0, 49, 49, 5]
    histogram: Any = result.panels[5]
    assert histogram.title == "What conv2 puts out"
    assert "294 values, 49 of them NaN or infinite" in histogram.caption
    assert result.values["histogram"].sum() == 294 - 49
    edges = result.values["edges"]
    axes = chart_figure(histogram).axes[0]
    names = [label.get_text().replace("−", "-") for label in axes.get_xticklabels()]
    assert float(names[0]) == pytest.approx((edges[0] + edges[1]) / 2, rel=6e-3)
    assert float(names[-1]) == pytest.approx((edges[-2] + edges[-1]) / 2, rel=6e-3)


def test_an_overflow_is_found_where_it_happens(network: Tiny, noise: Tensor) -> None:
    network.conv1.weight.detach()[:] = 1e25
    network.conv2.weight.detach()[:] = 1e25
    result = hookviz.run_lens("health", as_model(network), noise)
    says, rest = texts(result)
    assert says.text.startswith("conv2 (Conv2d) is the first layer with")
    assert "infinite" in says.text
    assert "its own arithmetic overflowed" in says.text
    assert "Activations explode" in rest.text
    assert "first in conv1" in rest.text


def test_a_function_between_the_layers_is_suspected(noise: Tensor) -> None:
    class Divides(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            found: Tensor = self.conv2(self.conv1(images).relu_().log())  # log 0
            return self.head(found.mean((2, 3)))  # type: ignore[no-any-return]

    says, _ = texts(hookviz.run_lens("health", as_model(seeded(Divides)), noise))
    assert says.text.startswith("conv2 (Conv2d) is the first layer")
    assert "a function between the layers made them" in says.text


def test_a_bad_input_is_named(network: Tiny) -> None:
    image = random_input(0)
    image[0, 0, 3, 3] = torch.nan
    says, _ = texts(hookviz.run_lens("health", as_model(network), image))
    assert "The network's input has them already" in says.text


def test_dead_units_are_counted(network: Tiny, noise: Tensor) -> None:
    bias(network.conv1)[[0, 2]] = -1e9
    result = hookviz.run_lens("health", as_model(network), noise)
    assert rows(result)["relu"][6] == "2 of 4"
    chart: Any = result.panels[3]
    assert chart.series["silent"][1] == 50
    _, rest = texts(result)
    assert "Activations explode in 1 of 5 outputs, first in conv1" in rest.text
    bias(network.conv2)[:] = -1e3
    result = hookviz.run_lens("health", as_model(network), noise)
    _, rest = texts(result)
    assert rest.tone == "bad"
    assert "Every unit of relu, call 2 is silent on this image" in rest.text


def test_a_constant_channel_is_dead_but_a_small_map_may_be_constant() -> None:
    conv = nn.Conv2d(3, 2, 1)
    conv.weight.detach()[1] = 0
    bias(conv)[1] = 5
    network = nn.Sequential(
        conv, nn.AdaptiveAvgPool2d(2), nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    )
    result = hookviz.run_lens("health", as_model(network), random_input(0))
    assert result.values["units"].tolist() == [2, 2, 2]
    assert result.values["dead"].tolist() == [1, 0, 0]  # 16×16, 2×2 and 2×2 cells


@pytest.mark.parametrize(
    ("activation", "ends"),
    [
        (nn.Sigmoid(), (0.01, 0.99)),
        (nn.Hardsigmoid(), (0.01, 0.99)),
        (nn.Tanh(), (-0.98, 0.98)),
        (nn.Softsign(), (-0.98, 0.98)),
        (nn.Hardtanh(-2, 3), (-1.95, 2.95)),
        (nn.ReLU6(), None),
        (nn.ReLU(), None),
    ],
)
def test_saturation_is_the_share_at_the_ends(
    activation: nn.Module, ends: tuple[float, float] | None
) -> None:
    image = 60 * random_input(2)
    network = nn.Sequential(nn.Identity(), activation)
    result = hookviz.run_lens("health", as_model(network), image, layer="1")
    found = result.values["saturated"][1]
    assert np.isnan(result.values["saturated"][0])
    if ends is None:
        assert np.isnan(found)
        return
    output = activation(image).numpy()
    assert found == pytest.approx(((output < ends[0]) | (output > ends[1])).mean())
    assert 0 < found < 1
    _, rest = texts(result)
    assert "Most saturated" in rest.text
    chart: Any = result.panels[3]
    assert chart.series["saturated"][1] == pytest.approx(100 * found)


def test_any_layer_can_be_looked_at(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("health", tiny, noise, layer="head")
    assert result.values["histogram"].sum() == 5
    *_, in_order, bins, _ = result.panels
    assert isinstance(in_order, ChartPanel)
    assert isinstance(bins, ChartPanel)
    axes = chart_figure(bins).axes[0]
    assert axes.get_xlabel() == "value"  # there are more than can be named, and they are no layers
    assert in_order.places == "place in the order of execution"
    with pytest.raises(hookviz.UnknownLayerError, match="conv1"):
        hookviz.run_lens("health", tiny, noise, layer="conv11")


def test_a_layer_without_numbers_is_refused(noise: Tensor) -> None:
    class Labels(nn.Module):
        def forward(self, given: Tensor) -> Tensor:
            return given.argmax(1)

    network = nn.Sequential(nn.Conv2d(3, 4, 1), Labels())
    assert hookviz.run_lens("health", as_model(network), noise).values["units"].tolist() == [4]
    with pytest.raises(hookviz.ModelError, match="no real numbers"):
        hookviz.run_lens("health", as_model(network), noise, layer="1")
