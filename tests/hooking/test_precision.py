import torch
from torch import nn

from hookviz.hooking.precision import device_and_dtype, dtypes, take_down_dtype


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
