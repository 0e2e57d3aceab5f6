from math import prod
from typing import Any

import numpy as np
import pytest
import torch
import torchinfo
from torch import nn

import hookviz
from tests.codegen.script_cases import CONVNEXT, RESNET, ScriptCase
from tests.networks import as_model, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"layers": "convolutions"}, RESNET),
    ScriptCase(networks=CONVNEXT),
)


@pytest.mark.parametrize(
    "name",
    ["mobilenet_v2", "googlenet", "convnext_tiny"],
)
def test_it_agrees_with_torchinfo(name: str) -> None:
    model = hookviz.load_model(name, "random")
    side = 96
    result = hookviz.run_lens("summary", model, torch.zeros(1, 3, side, side))
    table: Any = result.panels[2]
    layouts = {info.name: info.layout for info in hookviz.list_layers(model, kind="all")}
    theirs: dict[str, Any] = {}
    for layer in torchinfo.summary(
        model.network, (1, 3, side, side), depth=20, verbose=0
    ).summary_list:
        if layer.is_leaf_layer and layer.executed:
            theirs.setdefault(_path(layer), layer)
    assert len(table.rows) == len({row[0] for row in table.rows}) > 20
    for row in table.rows:
        if row[1] == "CNBlock":  # has a scale of its own beside its parts
            block = model.network.get_submodule(str(row[0]))
            assert row[6] == sum(part.numel() for part in block.parameters(recurse=False))
            continue
        layer = theirs[str(row[0]).split(" (")[0]]
        assert row[1] == layer.class_name
        sides = layer.output_size[1:]
        if layouts.get(str(row[0])) == "channels last":
            sides = [sides[-1], *sides[:-1]]
        assert row[5] == "×".join(map(str, sides))
        assert row[6] == max(layer.num_params, 0)
        if row[7]:  # they count norms too, once for each number that a norm learned
            calls = int(str(row[0]).split("(")[1].split()[0]) if "(" in str(row[0]) else 1
            # and a linear layer once, however many vectors it is given
            vectors = prod(layer.output_size[1:-1]) if row[1] == "Linear" else 1
            assert row[7] == layer.macs * calls * vectors
        else:
            assert not isinstance(layer.module, nn.Linear | nn.Conv2d)


def _path(layer: torchinfo.layer_info.LayerInfo) -> str:
    names: list[str] = []
    while layer is not None and layer.parent_info is not None:
        names.insert(0, layer.var_name)
        layer = layer.parent_info
    return ".".join(names)


def test_a_transposed_convolution_works_once_per_place_of_its_input() -> None:
    network = seeded(lambda: nn.Sequential(nn.ConvTranspose2d(3, 5, 4, stride=2, bias=False)))
    result = hookviz.run_lens("summary", as_model(network), random_input(0, 8))
    assert result.values["multiply_adds"].tolist() == [3 * 5 * 4 * 4 * 8 * 8]


def test_it_counts_and_says_so(tiny: hookviz.Model) -> None:
    result = hookviz.run_lens("summary", tiny, random_input(0), layers="convolutions")
    panels: Any = result.panels
    _, says, table = panels
    assert [row[0] for row in table.rows] == ["conv1", "conv2"]
    assert "5 layers" not in says.text
    assert f"{sum(p.numel() for p in tiny.network.parameters()):,} parameters" in says.text
    np.testing.assert_array_equal(
        result.values["multiply_adds"], [4 * (3 * 9 + 1) * 256, 6 * (4 * 9 + 1) * 49]
    )
