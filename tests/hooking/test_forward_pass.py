import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import pass_at_another_size, pass_without_data
from tests.kinds_of_networks import KINDS
from tests.networks import as_shared


def test_a_norm_of_one_value_is_told_as_the_cause() -> None:
    """Another size would not help, which evaluation mode does."""
    model, image = KINDS["batch norm"].made("batch norm")
    with pytest.raises(hookviz.ModelError, match=r"one value per channel.*Without train=True"):
        hookviz.capture(model, image)
    model, image = KINDS["instance norm"].made("instance norm")
    with pytest.raises(hookviz.ModelError, match=r"one value per channel, .* deviation\.$"):
        hookviz.capture(model, image)


def test_the_size_that_is_named_is_the_one_that_was_found() -> None:
    model, _image = KINDS["of one size"].made("of one size")
    with pytest.raises(hookviz.ModelError, match="thought to be made for"):
        hookviz.capture(model, torch.rand(1, 3, 8, 8))
    hookviz.list_layers(model)  # which searches it
    with pytest.raises(hookviz.ModelError, match=r"It is made for 3×32×32\."):
        hookviz.capture(model, torch.rand(1, 3, 8, 8))


def test_of_several_images_at_once_one_is_offered() -> None:
    model, image = KINDS["two inputs"].made("two inputs")
    many = hookviz.wrap(model.network, example=(image, torch.rand(2, 5)))
    with pytest.raises(hookviz.ModelError):
        hookviz.capture(many, torch.cat([image] * 3))


Seen = list[tuple[str, tuple[int, ...], bool]]


def follow(seen: Seen) -> Callable[[nn.Module, Tensor], None]:
    """Return what notes the shape of every conv layer's output, and whether it has numbers."""

    def run(network: nn.Module, images: Tensor) -> None:
        for name, module in network.named_modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_hook(
                    lambda _module, _inputs, output, name=name: seen.append(
                        (name, tuple(output.shape), not output.is_meta)
                    )
                )
        network(images)

    return run


@pytest.mark.parametrize("runs", [pass_without_data, pass_at_another_size])
def test_a_small_network_has_the_same_shapes_with_data_while_the_compiler_is_not_there(
    runs: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = as_shared(models.squeezenet1_1(num_classes=3))
    with_data: Seen = []
    without: Seen = []
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    runs(model, (3, 96, 64), follow(with_data))
    monkeypatch.setitem(sys.modules, "torch._dynamo", ModuleType("torch._dynamo"))
    runs(model, (3, 96, 64), follow(without))
    assert [each[:2] for each in with_data] == [each[:2] for each in without]
    assert all(has_numbers for *_, has_numbers in with_data)
    assert not any(has_numbers for *_, has_numbers in without)
    large: Seen = []
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    pass_without_data(as_shared(models.resnet18(num_classes=3)), (3, 64, 64), follow(large))
    assert large
    assert not any(has_numbers for *_, has_numbers in large)  # it is never run with data


def test_a_size_that_the_network_refuses_is_an_error_or_the_end_of_what_is_seen() -> None:
    model = as_shared(models.squeezenet1_1(num_classes=3))
    with pytest.raises(ModelError, match="4×96×96"):
        pass_without_data(model, (4, 96, 96), follow([]))
    pass_at_another_size(model, (4, 96, 96), follow([]))
