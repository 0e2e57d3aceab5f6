from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking.device import device_and_dtype, dtypes, take_down_dtype, with_numbers
from hookviz.types import Preprocess
from tests.networks import random_input, seeded
from tests.odd_networks import Odd
from tests.pictures import picture

IMAGE = random_input(5)


def test_only_the_device_without_numbers_is_set_aside() -> None:
    made = with_numbers(lambda: torch.zeros(1))
    with torch.device("meta"):
        assert made().device == torch.device("cpu")
        assert torch.zeros(1).is_meta
    assert made().device == torch.device("cpu")


class MakesTensors(Odd):
    def use(self, maps: Tensor) -> Tensor:
        return maps * torch.linspace(0, 1, maps.shape[-1]) + torch.zeros(1)


@pytest.mark.parametrize("by_default", [False, True], ids=["block", "default"])
def test_a_default_device_without_numbers_takes_none_from_a_capture(*, by_default: bool) -> None:
    network = seeded(MakesTensors).eval()
    steps = Preprocess(16, 16)
    model = hookviz.wrap(network, steps)
    plain = hookviz.capture(model, IMAGE)
    image = picture()
    of_image = hookviz.capture(model, image)
    try:
        if by_default:
            torch.set_default_device("meta")
            found, again, other = _captures(network, steps, model, image)
        else:
            with torch.device("meta"):
                found, again, other = _captures(network, steps, model, image)
                assert torch.zeros(1).is_meta  # the person's block goes on
    finally:
        torch.set_default_device(None)
    assert torch.equal(found["conv"].values, plain["conv"].values)
    for cap in (again, other):
        assert torch.equal(cap["conv"].values, of_image["conv"].values)
        assert cap.logits is not None
        assert of_image.logits is not None
        assert torch.equal(cap.logits, of_image.logits)


def _captures(
    network: nn.Module, steps: Preprocess, model: hookviz.Model, image: Any
) -> tuple[hookviz.Capture, ...]:
    return (
        hookviz.capture(model, IMAGE),
        hookviz.capture(model, image),
        hookviz.capture(hookviz.wrap(network, steps), image),
    )


def test_the_first_parameter_tells_until_a_pass_does() -> None:
    network = nn.Sequential(nn.Linear(1, 1).bfloat16(), nn.Linear(4, 4))
    assert dtypes(network) == (torch.float32, torch.bfloat16)
    assert device_and_dtype(network) == (torch.device("cpu"), torch.bfloat16)
    take_down_dtype(network, torch.float32)
    assert device_and_dtype(network)[1] == torch.float32


def test_without_parameters_it_is_float32() -> None:
    assert device_and_dtype(nn.ReLU()) == (torch.device("cpu"), torch.float32)


class Grouped(nn.Linear):
    """Its parameters are groups for an optimiser."""

    def parameters(self, recurse: bool = True) -> list[dict[str, object]]:  # type: ignore[override]
        return [{"params": list(super().parameters(recurse)), "lr": 0.1}]


def test_parameters_that_are_groups_are_gone_round() -> None:
    assert device_and_dtype(Grouped(2, 2).double())[1] == torch.float64
