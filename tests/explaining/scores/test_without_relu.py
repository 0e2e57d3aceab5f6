"""ReLUs switched off, against the same networks rewritten without any by hand."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.explaining.scores.without_relu import without_relu
from hookviz.types import Model, ModelInput


class Mixed(nn.Module):
    """ReLU as a module, in place, as a function, as a method and as a cut at zero."""

    def __init__(self, *, rectified: bool = True) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.rectified = rectified
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(6))
        self.relu, self.written, self.six = nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6()
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        steps: tuple[Any, ...] = (
            *(self.relu, self.written, F.relu, Tensor.relu, self.six),
            lambda value: value.clamp(min=0),
        )
        for conv, step in zip(self.convs, steps, strict=True):
            x = conv(x)
            x = step(x) if self.rectified else x
        x = x.clamp(-9, 9)  # no ReLU
        scores: Tensor = self.head(torch.sigmoid(x).mean((2, 3)))
        return scores


def wrapped(network: nn.Module) -> tuple[Model, ModelInput]:
    model = hookviz.wrap(network.eval(), example=(torch.zeros(1, 3, 16, 16),))
    return model, hookviz.capture(model, torch.rand(1, 3, 16, 16)).model_input


def test_every_way_to_write_a_relu_is_found() -> None:
    network, plain = Mixed(), Mixed(rectified=False)
    plain.load_state_dict(network.state_dict())
    model, model_input = wrapped(network)
    off = without_relu(model, model_input)
    before = hookviz.capture(model, model_input.tensor).logits
    with torch.no_grad():
        torch.testing.assert_close(off.scores, plain.eval()(model_input.tensor)[0])
        assert not torch.allclose(off.scores, network(model_input.tensor)[0], atol=1e-3)
    assert off.switched_off == {"ReLU": 5, "ReLU6": 1}
    off = without_relu(model, model_input)
    after = hookviz.capture(model, model_input.tensor).logits
    assert before is not None
    assert after is not None
    assert torch.equal(before, after)  # the model itself stays as it was
