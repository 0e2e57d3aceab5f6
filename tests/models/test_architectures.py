import pytest
import torch

import hookviz
from hookviz.models import architectures


@pytest.mark.parametrize("name", ["shapesnet", "regnet_y_400mf", "googlenet"])
def test_an_outline_has_a_networks_shapes_and_no_values(name: str) -> None:
    outline = architectures.outline(name, 7)
    network = architectures.build(name, 7, training_heads=False)
    assert {key: own.shape for key, own in outline.items()} == {
        key: own.shape for key, own in network.state_dict().items()
    }
    assert all(own.is_meta for own in outline.values())
    assert architectures.class_keys("resnet18") == ("fc.weight", "fc.bias")


def test_some_architectures_have_heads_for_training() -> None:
    specs = [spec for spec in hookviz.list_models() if architectures.has_training_heads(spec.name)]
    assert [spec.name for spec in specs if spec.task == "classification"] == [
        "googlenet",
        "inception_v3",
    ]
    assert {spec.family for spec in specs if spec.task != "classification"} == {"DeepLabV3", "FCN"}


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_training_heads_are_gone(name: str) -> None:
    model = hookviz.load_model(name, "random")
    assert not any("aux" in child.casefold() for child, _ in model.network.named_children())
    size = model.min_size
    assert model.network(torch.zeros(1, 3, size, size)).shape == (1, 1000)
