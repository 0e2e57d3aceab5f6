import inspect
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torchvision import models

import hookviz
from hookviz.models import catalog
from hookviz.settings import settings


def test_figures_are_those_of_torchvisions_own_weights() -> None:
    spec = catalog.find_model("resnet34")
    assert (spec.title, spec.family, spec.parameters) == ("ResNet-34", "ResNet", 21_797_672)
    assert spec.accuracy == 73.314
    assert spec.trained_on == "ImageNet-1K"
    assert spec.download_bytes == pytest.approx(87_319_819, rel=1e-4)  # the real file's bytes


def test_names_and_titles_are_unique_and_families_are_together() -> None:
    specs = hookviz.list_models()
    assert len({spec.name for spec in specs}) == len(specs)
    assert len({spec.title for spec in specs}) == len(specs)
    families = [spec.family for spec in specs]
    assert families == sorted(families, key=families.index)
    assert {"ResNet", "VGG", "EfficientNet", "ConvNeXt", "MobileNetV3"} <= set(families)


def test_the_catalog_is_what_looking_inside_every_network_says() -> None:
    def convolutional(name: str) -> bool:
        builder = models.get_model_builder(name)
        made = inspect.signature(builder).return_annotation
        quiet = (
            {"init_weights": False} if "aux_logits" in inspect.signature(made).parameters else {}
        )
        kinds = {type(module).__name__.casefold() for module in builder(**quiet).modules()}
        return "conv2d" in kinds and not any("attention" in kind for kind in kinds)

    smallest: dict[str, tuple[int, str]] = {}  # one network of each of torchvision's files
    for name in models.list_models(module=models):
        module = models.get_model_builder(name).__module__
        size = models.get_model_weights(name).DEFAULT.meta["num_params"]
        smallest[module] = min(smallest.get(module, (size, name)), (size, name))
    listed = {spec.name for spec in hookviz.list_models()}
    assert {name for _, name in smallest.values() if convolutional(name)} == {
        name for _, name in smallest.values() if name in listed
    }


def test_weights_on_disk_are_found_where_torch_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert not catalog.find_model("squeezenet1_1").on_disk
    path = tmp_path / "hub" / "checkpoints" / "squeezenet1_1-b8a52dc0.pth"
    path.parent.mkdir(parents=True)
    path.touch()
    assert catalog.find_model("squeezenet1_1").on_disk


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(hookviz.UnknownModelError, match="'resnet34'"):
        hookviz.load_model("resnet-34")


def test_no_network_of_the_catalog_needs_building_to_be_listed() -> None:
    catalog._specs.cache_clear()
    built: list[nn.Module] = []
    original = nn.Module.__init__

    def counting(self: nn.Module, *args: object, **kwargs: object) -> None:
        built.append(self)
        original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(nn.Module, "__init__", counting)
        hookviz.list_models()
    assert built == []
    assert torch.is_grad_enabled()


def test_the_first_model_is_the_one_that_is_asked_for_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOOKVIZ_START", "resnet34")
    settings.cache_clear()
    try:
        assert catalog.first_model().name == "squeezenet"
        path = catalog.weights_path("resnet34")
        path.parent.mkdir(parents=True)
        path.touch()
        assert catalog.first_model().name == "resnet34"
        monkeypatch.setenv("HOOKVIZ_START", "shapesnet")
        settings.cache_clear()
        assert catalog.first_model().name == "shapesnet"
        monkeypatch.setenv("HOOKVIZ_START", "resnet43")
        settings.cache_clear()
        with pytest.raises(hookviz.UnknownModelError, match="resnet34"):
            catalog.first_model()
    finally:
        monkeypatch.undo()
        settings.cache_clear()
