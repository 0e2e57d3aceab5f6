import json
from pathlib import Path

import pytest

import hookviz
from hookviz.models import catalog
from tests.cli.command import mistake, output_of


def test_the_table_has_every_model() -> None:
    head, *rows = output_of("models").splitlines()
    assert head.split()[:4] == ["name", "title", "family", "parameters"]
    assert [row.split()[0] for row in rows] == [spec.name for spec in hookviz.list_models()]
    [resnet] = [row for row in rows if row.startswith("resnet34 ")]
    assert " ".join(resnet.split()).startswith(
        "resnet34 ResNet-34 ResNet 21,797,672 87.3 MB 73.3 %"
    )


def test_families_in_any_case_and_several() -> None:
    listed = json.loads(output_of("models", "--family", "VGG", "--family", "alexnet", "--json"))
    assert {model["family"] for model in listed} == {"AlexNet", "VGG"}
    assert listed[0] == {
        "name": "alexnet",
        "title": "AlexNet",
        "family": "AlexNet",
        "parameters": 61_100_840,
        "download_bytes": catalog.find_model("alexnet").download_bytes,
        "accuracy": 56.522,
        "trained_on": "ImageNet-1K",
        "min_size": 63,
        "on_disk": catalog.is_on_disk("alexnet"),
        "task": "classification",
        "metric": "top-1",
    }
    assert "Did you mean 'VGG'" in mistake("models", "--family", "vg")


def test_on_disk_lists_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    names = [model["name"] for model in json.loads(output_of("models", "--on-disk", "--json"))]
    assert names == ["squeezenet", "shapesnet", "shapesvit"]
    path = catalog.weights_path("resnet18")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    table = output_of("models", "--on-disk").splitlines()
    assert [row.split()[0] for row in table[1:]] == [*names, "resnet18"]
    assert all(row.endswith("yes") for row in table[1:])
