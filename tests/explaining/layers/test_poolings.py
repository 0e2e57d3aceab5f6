"""Poolings that a pass runs, as modules and as functions, and the cells that each was made of."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.poolings import poolings


class Pools(nn.Module):
    """Poolings of every kind, one as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.head = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.conv(x))
        x = F.avg_pool2d(x, (2, 3))
        x = F.adaptive_max_pool2d(x, 3)
        scores: Tensor = self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return scores


def test_every_pooling_is_found_with_its_windows() -> None:
    torch.manual_seed(5)
    model = hookviz.wrap(Pools().eval(), example=(torch.zeros(1, 3, 32, 32),))
    found = poolings(model, hookviz.capture(model, torch.rand(1, 3, 32, 32)).model_input)
    assert [(each.layer, each.kind) for each in found] == [
        ("pool", "max"),
        ("", "average"),
        ("", "max"),
        ("", "average"),
    ]
    assert [(each.window, each.stride, each.padding) for each in found] == [
        ((3, 3), (2, 2), (1, 1)),
        ((2, 3), (2, 3), (0, 0)),
        (None, None, (0, 0)),
        (None, None, (0, 0)),
    ]
    for each in found:
        assert each.channels == 5
        for row in range(each.after.shape[0]):
            for column in range(each.after.shape[1]):
                window = each.before[each.cells(row, column)]
                made = window.max() if each.kind == "max" else window.mean()
                assert each.after[row, column] == pytest.approx(made, rel=1e-5)
