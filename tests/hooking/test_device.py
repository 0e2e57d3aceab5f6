from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooking.device import device_and_dtype, dtypes, take_down_dtype
from hookviz.types import Preprocess
from tests.networks import random_input, seeded
from tests.odd_networks import Odd
from tests.pictures import picture

IMAGE = random_input(5)


class MakesTensors(Odd):
    def use(self, maps: Tensor) -> Tensor:
        return maps * torch.linspace(0, 1, maps.shape[-1]) + torch.zeros(1)


@pytest.mark.parametrize("by_default", [False, True], ids=["block", "default"])
def test_a_default_device_without_numbers_takes_none_from_a_capture(*, by_default: bool) -> None:
    network = seeded(MakesTensors).eval()
    steps = Preprocess(16, 16)
    model = hookviz.wrap(network, steps)
    image = picture()

    def captures() -> list[Any]:
        new = hookviz.wrap(network, steps)
        return [hookviz.capture(*pair) for pair in ((model, IMAGE), (model, image), (new, image))]

    plain = captures()
    try:
        if by_default:
            torch.set_default_device("meta")
            found = captures()
        else:
            with torch.device("meta"):
                found = captures()
                assert torch.zeros(1).is_meta  # the person's block goes on
    finally:
        torch.set_default_device(None)
    for ours, theirs in zip(found, plain, strict=True):
        assert torch.equal(ours["conv"].values, theirs["conv"].values)
        assert ours.logits is not None
        assert theirs.logits is not None
        assert torch.equal(ours.logits, theirs.logits)


def test_the_first_parameter_tells_until_a_pass_does() -> None:
    class Grouped(nn.Linear):
        """Its parameters are groups for an optimiser."""

        def parameters(self, recurse: bool = True) -> list[dict[str, object]]:  # type: ignore[override]
            return [{"params": list(super().parameters(recurse)), "lr": 0.1}]

    network = nn.Sequential(nn.Linear(1, 1).bfloat16(), nn.Linear(4, 4))
    assert dtypes(network) == (torch.float32, torch.bfloat16)
    assert device_and_dtype(network) == (torch.device("cpu"), torch.bfloat16)
    take_down_dtype(network, torch.float32)
    assert device_and_dtype(network)[1] == torch.float32
    assert device_and_dtype(nn.ReLU()) == (torch.device("cpu"), torch.float32)
    assert device_and_dtype(Grouped(2, 2).double())[1] == torch.float64
