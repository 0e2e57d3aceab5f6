import inspect
import warnings

import pytest
import torch
from torch import nn
from torchvision import models

import hookviz
from hookviz.models import catalog, torchvision_models


def test_figures_are_those_of_torchvisions_own_weights() -> None:
    spec = catalog.find_model("resnet34")
    assert (spec.title, spec.family, spec.parameters) == ("ResNet-34", "ResNet", 21_797_672)
    assert spec.accuracy == 73.314
    assert spec.trained_on == "ImageNet-1K"
    assert spec.download_bytes == pytest.approx(87_319_819, rel=1e-4)  # the real file's bytes


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


def test_no_network_of_the_catalog_needs_building_to_be_listed() -> None:
    torchvision_models.specs.cache_clear()
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
