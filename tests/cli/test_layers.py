import json
import sys
from pathlib import Path

import pytest

import hookviz
from tests.cli.command import invoke, mistake, output_of
from tests.repositories import save, vit


def test_one_row_a_convolution_and_all_layers_as_json() -> None:
    head, *rows = output_of("layers", "shapesnet").splitlines()
    assert head.split()[:5] == ["number", "layer", "kind", "kernel", "stride"]
    expected = hookviz.list_layers(hookviz.load_model("shapesnet"))
    assert [row.split()[:2] for row in rows] == [
        [str(number), layer.name] for number, layer in enumerate(expected, start=1)
    ]
    assert rows[0].split()[1:] == [
        *("stem.first.conv", "Conv2d", "7×7", "2×2", "3×128×128", "→", "32×64×64"),
        *("channels", "first", "7×7", "4,704", f"{4704 * 64 * 64:,}", "1"),
    ]
    every = json.loads(output_of("layers", "shapesnet", "--all", "--size", 64, "--json"))
    names = [layer["name"] for layer in every]
    assert names.index("stem.first.norm") == names.index("stem.first.conv") + 1
    assert every[0]["input_shape"] == [3, 64, 64]
    assert every[0]["output_shape"] == [32, 32, 32]
    assert every[0]["receptive_field"] == [7, 7]
    assert every[0]["multiply_adds"] == 4704 * 32 * 32
    assert every[-1]["receptive_field"] == [64, 64]
    assert every[-1] | {"kind": "Linear", "output_shape": [20]} == every[-1]


def test_whatever_puts_out_maps_blocks_before_their_parts() -> None:
    rows = [row.split() for row in output_of("layers", "resnet18", "--kind", "maps").splitlines()]
    names = [row[1] for row in rows]
    assert names[1:8] == [
        *("conv1", "bn1", "relu", "maxpool", "layer1", "layer1.0", "layer1.0.conv1"),
    ]
    assert "fc" not in names
    convs = hookviz.list_layers(hookviz.load_model("resnet18", "random"))
    inside = [layer for layer in convs if layer.name.startswith("layer1.")]
    block = rows[names.index("layer1")]
    assert block[:3] == ["5", "layer1", "Sequential"]
    assert block[-2] == f"{sum(layer.multiply_adds for layer in inside):,}"
    assert block[-3] == f"{4 * (64 * 64 * 9 + 2 * 64):,}"  # batch norms learn two numbers a channel


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert output_of("layers", "squeezenet1_1").startswith("number  layer")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_work() -> None:
    assert "Did you mean 'shapesnet'" in mistake("layers", "shapenet")
    assert "size" in mistake("layers", "shapesnet", "--size", 0)
    assert "224×224" in mistake("layers", "alexnet", "--size", 20)
    assert "no.pth" in mistake("layers", "shapesnet", "--weights", "no.pth")


TRANSFORMER = """
import torch
from torchvision.models.vision_transformer import VisionTransformer

def make():
    return VisionTransformer(32, 8, 2, 2, 24, 48, num_classes=5)
"""


def test_how_each_layer_lies_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layouts_test_net.py").write_text(TRANSFORMER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    options = ("layers", "layouts_test_net:make", "--size", 32, "--all")
    head, *lines = output_of(*options).splitlines()
    column = slice(head.index("layout"), head.index("sees"))
    said = {line.split()[1]: line[column].strip() for line in lines}
    assert said["conv_proj"] == "channels first"
    block = "encoder.layers.encoder_layer_1."
    assert said[f"{block}ln_2"] == "4×4 patches and a class token; 24 channels"
    assert said["heads.head"] == ""
    every = {row["name"]: row for row in json.loads(output_of(*options, "--json"))}
    normed = every[f"{block}ln_2"]
    assert (normed["layout"], normed["prefix_tokens"]) == ("tokens", 1)


def test_layers_of_a_repository_of_hugging_face(tmp_path: Path) -> None:
    folder = save(vit(), tmp_path / "vit")
    result = invoke("layers", f"hf:{folder}", "--json")
    assert [layer["name"] for layer in json.loads(result.stdout)] == [
        "vit.embeddings.patch_embeddings.projection"
    ]
    assert "hf:google/vit-base-patch16-224" in mistake("layers", "hf:./there-is-none")
