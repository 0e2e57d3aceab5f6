from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hookviz.hooking.nested_outputs import map_tensors


class Pair(NamedTuple):
    maps: Tensor
    size: int


@dataclass(frozen=True)
class Boxes:
    scores: Tensor
    name: str


def test_an_output_keeps_its_form() -> None:
    one = torch.ones(2)
    output = OrderedDict(pair=Pair(one, 3), listed=[one, None], boxes=Boxes(one, "boxes"))
    found = map_tensors(output, lambda tensor: tensor + 1)
    assert isinstance(found, OrderedDict)
    assert isinstance(found["pair"], Pair)
    assert found["pair"].size == 3
    assert found["listed"][1] is None
    assert found["boxes"].name == "boxes"
    for tensor in (found["pair"].maps, found["listed"][0], found["boxes"].scores):
        assert tensor.tolist() == [2, 2]
    assert one.tolist() == [1, 1]
