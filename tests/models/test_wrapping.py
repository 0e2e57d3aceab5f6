import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.conftest import Tiny, picture, random_input, seeded


def test_wrap_takes_a_copy() -> None:
    module = seeded(Tiny).train()
    model = hookviz.wrap(module, categories=["a", "b"])
    before = hookviz.capture(model, random_input(1))["conv1"].values
    with torch.no_grad():
        module.conv1.weight.zero_()
    assert torch.equal(hookviz.capture(model, random_input(1))["conv1"].values, before)
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    assert model.categories == ("a", "b")


def test_wrap_refuses_what_is_no_module() -> None:
    with pytest.raises(hookviz.ModelError, match="not function"):
        hookviz.wrap(digits)  # type: ignore[arg-type]

    class Locked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(hookviz.ModelError, match="Locked can't be copied"):
        hookviz.wrap(Locked())


def test_wrap_gives_a_model_back(tiny: hookviz.Model) -> None:
    assert hookviz.wrap(tiny) is tiny
    changed = hookviz.wrap(tiny, categories=["a"], name="mine")
    assert (changed.categories, changed.name, changed.title) == (("a",), "mine", "mine")
    assert changed.network is tiny.network
    assert changed.preprocess is tiny.preprocess


def pooled(channels: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def digits() -> nn.Module:
    """A LeNet: it takes 28×28 and nothing else."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10)),
    )


def test_the_first_conv_layer_says_how_many_channels_a_network_takes() -> None:
    colour, grey = (hookviz.wrap(seeded(pooled(channels))) for channels in (3, 1))
    assert colour.preprocess == hookviz.Preprocess(resize=256, crop=224)
    assert grey.preprocess == hookviz.Preprocess(resize=256, crop=224, mean=(0.5,), std=(0.5,))
    seen = hookviz.capture(grey, picture())
    assert seen.input.shape == (1, 1, 224, 224)
    assert seen["0"].values.shape == (4, 222, 222)
    assert -1 <= seen.input.min() < seen.input.max() <= 1


def test_a_network_of_one_size_is_looked_at_in_that_size() -> None:
    model = hookviz.wrap(seeded(digits))
    assert model.preprocess == hookviz.Preprocess(resize=28, crop=28, mean=(0.5,), std=(0.5,))
    assert [layer.output_shape for layer in hookviz.list_layers(model)] == [
        (6, 28, 28),
        (16, 10, 10),
    ]
    assert len(hookviz.capture(model, picture()).predictions(3)) == 3


def test_other_channel_counts_take_tensors_and_say_so() -> None:
    model = hookviz.wrap(seeded(pooled(5)))
    assert [layer.input_shape for layer in hookviz.list_layers(model)] == [(5, 224, 224)]
    with pytest.raises(hookviz.HookVizError, match=r"takes 5 channels.*tensor"):
        hookviz.capture(model, picture())
    assert hookviz.capture(model, torch.randn(5, 40, 40))["0"].values.shape == (4, 38, 38)

    def five(image: Any) -> Tensor:
        return torch.ones(5, *reversed(image.size))

    own = hookviz.wrap(seeded(pooled(5)), five)
    assert hookviz.capture(own, picture())["0"].values.shape == (4, 28, 38)


def test_a_networks_own_failures_leave_the_usual_preprocess() -> None:
    class Never(nn.Module):
        def forward(self, _: Tensor) -> Tensor:
            raise LookupError

    assert hookviz.wrap(Never()).preprocess == hookviz.Preprocess(resize=256, crop=224)
