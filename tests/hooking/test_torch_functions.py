from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from hookviz.hooking.torch_functions import EveryFunction, function_name


class Counting(EveryFunction):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        self.names.append(function_name(func))
        output = func(*args, **kwargs)
        return output + 1 if self.names[-1] == "relu" else output


def test_every_function_of_the_block_is_seen_and_can_be_answered_otherwise() -> None:
    values = torch.tensor([-1.0, 2.0])
    with Counting() as counting:
        found = F.relu(values) * 2
    assert counting.names == ["relu", "mul"]
    assert found.tolist() == [2, 6]
    assert F.relu(values).tolist() == [0, 2]
    ways = (F.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_)
    assert {function_name(way) for way in ways} == {"relu"}
