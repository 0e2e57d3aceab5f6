from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import hookviz
from hookviz.drawing.panels import ChartPanel, GridPanel, TablePanel, TextPanel
from hookviz.explaining.pruning.pruned_network import METHODS
from hookviz.types import Model
from tests.codegen.script_cases import (
    RESNET,
    SHAPESNET,
    SHAPESVIT,
    SQUEEZENET,
    ScriptCase,
)
from tests.lenses.said import texts
from tests.networks import Tiny, as_model, plain_network, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"most": 60, "step": 25, "keep": 70}, SQUEEZENET),
    ScriptCase({"where": "this layer alone", "layer": "stage1.first.conv"}, SHAPESNET),
    ScriptCase({"method": "random weights", "seed": 3, "step": 40}, SHAPESNET),
    ScriptCase({"method": "channels by L1 norm", "step": 40, "keep": 30}, RESNET),
    ScriptCase(
        {"method": "channels by L2 norm", "step": 40, "biases": "stay, as in torch.nn.utils.prune"},
        SHAPESNET,
    ),
    ScriptCase({"method": "random channels", "seed": 5, "step": 40}, SQUEEZENET),
    ScriptCase(
        {
            "method": "channels by effect",
            "where": "this layer alone",
            "layer": "stage1.first.conv",
            "step": 40,
        },
        SHAPESNET,
    ),
    ScriptCase({"where": "this layer alone", "layer": "blocks.1.mlp.fc1", "step": 40}, SHAPESVIT),
    ScriptCase(
        {
            "method": "random channels",
            "where": "every conv and linear layer",
            "layer": "blocks.1.mlp.fc1",
            "step": 40,
        },
        SHAPESVIT,
    ),
)
NOT_IN_SCRIPT = (  # of the smaller network, which takes HookViz to make
    *("smaller_logits", "smaller_difference", "parameters", "multiply_adds"),
    "seconds_of_a_pass",
)


def test_it_agrees_with_pytorchs_own_pruning(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("prune-weights", tiny, noise)
    np.testing.assert_allclose(result.values["shares"], [*np.arange(0, 0.95, 0.1), 0.95])
    for index, share in enumerate(result.values["shares"]):
        other = plain_network(tiny)
        convs = [(other.get_submodule(name), "weight") for name in ("conv1", "conv2")]
        prune.global_unstructured(convs, prune.L1Unstructured, amount=float(share))
        with torch.no_grad():
            logits: Tensor = other(noise)[0]
        masks = torch.cat([conv.get_buffer("weight_mask").flatten() for conv, _ in convs])
        assert result.values["removed"][index] == pytest.approx(1 - float(masks.mean()))
        np.testing.assert_allclose(result.values["logits"][index], logits, rtol=1e-5, atol=1e-6)
        chances = logits.softmax(0)
        assert result.values["top"][index] == int(logits.argmax())
        assert result.values["top_probability"][index] == pytest.approx(float(chances.max()))
        first = result.values["top"][0]
        assert result.values["probability"][index] == pytest.approx(float(chances[first]))
        assert result.values["logit"][index] == pytest.approx(float(logits[first]), abs=1e-6)


def test_the_steps_can_be_chosen(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("prune-weights", tiny, noise, most=70, step=50)
    np.testing.assert_allclose(result.values["shares"], [0, 0.5, 0.7])
    with pytest.raises(hookviz.SettingError, match="from 1 to 100"):
        hookviz.run_lens("prune-weights", tiny, noise, most=120)


class OneWeightEach(nn.Module):
    """Class 0 hangs on a small weight, and class 1 on a large one with a handicap."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1, bias=False)
        self.conv.weight = nn.Parameter(torch.tensor([[1.0, 2, 3], [4, 5, 6]])[..., None, None])

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.conv(images).mean((2, 3))
        return scores + torch.tensor([0.0, -10.0], device=images.device)


def test_it_says_where_the_prediction_changes() -> None:
    # With all: 6 and 15 − 10 = 5. Without 1 and 2 (a third): 3 and 5.
    result = hookviz.run_lens(
        "prune-weights", as_model(OneWeightEach()), torch.ones(1, 3, 4, 4), most=100, step=17
    )
    logits = [[6, 5], [5, 5], [3, 5], [0, 5], [0, 1], [0, -4], [0, -10]]
    np.testing.assert_allclose(result.values["logits"], logits)
    _, says, chart, table, *_ = result.panels
    assert isinstance(says, TextPanel)
    assert isinstance(chart, ChartPanel)
    assert isinstance(table, TablePanel)
    assert "6 weights in 1 conv layer;" in says.text
    assert "class 0 holds up to 17 %; at 34 % it becomes class 1." in says.text
    assert [row[1] for row in table.rows] == [6, 5, 4, 3, 2, 1, 0]
    assert [row[5] for row in table.rows] == ["yes", "yes", "no", "no", "no", "yes", "yes"]
    np.testing.assert_allclose(
        chart.series["class 0"], 100 * torch.tensor(logits).float().softmax(1)[:, 0], rtol=1e-5
    )


def test_equal_weights_go_together(noise: Tensor) -> None:
    network = seeded(Tiny)
    with torch.no_grad():
        network.conv1.weight.fill_(0.5)
        network.conv2.weight.fill_(-0.5)
    result = hookviz.run_lens("prune-weights", as_model(network), noise, most=30, step=30)
    assert result.values["removed"].tolist() == [0, 1]


def test_scores_that_are_no_numbers_are_refused(noise: Tensor) -> None:
    network = seeded(Tiny)
    network.head.bias.detach()[0] = torch.inf
    with pytest.raises(hookviz.ModelError, match="no prediction to lose"):
        hookviz.run_lens("prune-weights", as_model(network), noise)


def test_the_maps_are_those_of_the_pruned_network() -> None:
    model = hookviz.load_model("shapesnet")
    image = random_input(1, 64)
    layer = "stage2.first.conv"
    result = hookviz.run_lens("prune-weights", model, image, layer=layer, keep=80, step=50)
    pruned = hookviz.prune(model, 0.8)
    for state, network in (("before", model), ("after", pruned)):
        expected = hookviz.capture(network, image, layer, logits=True)
        np.testing.assert_array_equal(result.values[state], expected[layer].values)
    assert expected.logits is not None
    np.testing.assert_array_equal(result.values["kept_logits"], expected.logits)
    grids = [panel for panel in result.panels if isinstance(panel, GridPanel)]
    assert [(grid.title, grid.state) for grid in grids] == [(layer, "before"), (layer, "after")]
    assert grids[0].grid.limits == grids[1].grid.limits


@pytest.mark.parametrize("method", METHODS)
def test_the_file_gives_the_scores_that_were_shown(method: str, tmp_path: Path) -> None:
    model = hookviz.load_model("shapesnet")
    image = random_input(1, 32)
    result = hookviz.run_lens(
        "prune-weights", model, image, method=method, keep=30, step=50, seed=2
    )
    file: Any = result.panels[-1]
    assert file.name == "shapesnet-pruned.safetensors"
    path = tmp_path / file.name
    path.write_bytes(file.make(model))
    again = hookviz.load_model("shapesnet", path)
    logits: Any = hookviz.capture(again, image, logits=True).logits
    np.testing.assert_array_equal(logits, result.values["kept_logits"])


def test_whole_channels_give_a_smaller_network(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens("prune-weights", tiny, noise, method="channels by L1 norm")
    table = next(p for p in result.panels if isinstance(p, TablePanel) and "smaller" in p.title)
    # 4 and 6 channels of which half go: 3·9 + 1 numbers a kernel, then 2·9 + 1, then 3 columns
    assert result.values["parameters"].tolist() == [
        4 * 28 + 6 * 37 + 6 * 5 + 5,
        2 * 28 + 3 * 19 + 3 * 5 + 5,
    ]
    assert [row[1] for row in table.rows] == result.values["parameters"].tolist()
    assert [row[2] for row in table.rows] == result.values["multiply_adds"].tolist()
    assert "5 channels of 2 layers are taken out" in table.caption
    assert float(result.values["smaller_difference"]) < 1e-6
    stays = hookviz.run_lens(
        "prune-weights",
        tiny,
        noise,
        method="channels by L1 norm",
        biases="stay, as in torch.nn.utils.prune",
    )
    assert "parameters" not in stays.values


def test_where_nothing_can_be_taken_out_it_says_why() -> None:
    model = as_model(OneWeightEach())
    result = hookviz.run_lens(
        "prune-weights", model, torch.ones(1, 3, 4, 4), method="random channels"
    )
    assert "No channel of OneWeightEach can be taken out" in texts(result)
