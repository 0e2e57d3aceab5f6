import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.steps import steps_after
from tests.networks import as_model, seeded


class Mixed(nn.Module):
    """A ReLU that is a function, one module that is shared, and more channels in between."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.second = nn.Conv2d(4, 6, 3)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.pool(torch.relu(self.first(images)))
        scores: Tensor = F.gelu(self.pool(self.second(maps))).mean((2, 3))
        return scores


def test_functions_and_each_call_of_a_module_are_steps() -> None:
    trace = layer_trace(as_model(seeded(Mixed)), (3, 16, 16))
    assert [str(step) for step in steps_after(trace, "first")] == ["relu() after first", "pool"]
    assert [str(step) for step in steps_after(trace, "second")] == ["pool#1", "gelu() after pool"]
