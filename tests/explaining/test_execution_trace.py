import pytest
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.execution_trace import trace_execution
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import REMEMBERING, Odd


def test_every_call_is_timed_three_times(tiny: Model, noise: Tensor) -> None:
    shares: list[float] = []
    steps = trace_execution(tiny, prepare(tiny, noise), shares.append).steps
    assert [str(step.address) for step in steps] == ["conv1", "relu", "conv2", "relu#1", "head"]
    assert all(len(step.seconds) == 3 and min(step.seconds) > 0 for step in steps)
    assert shares == sorted(shares)
    assert shares[-1] == 1


class Twice(nn.Module):
    """A block that runs twice with another one inside, and a block that runs no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 3, 1)
        self.inner = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Conv2d(3, 3, 3)), nn.Sigmoid())
        self.idle = nn.Sequential()
        self.passed = Unused()

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.passed(self.inner(self.inner(self.idle(self.stem(images)))))
        return values


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, images: Tensor) -> Tensor:
        return images * 2


def test_the_blocks_are_those_that_the_steps_ran_in(noise: Tensor) -> None:
    model = as_model(seeded(Twice))
    flow = trace_execution(model, prepare(model, noise))
    assert [(str(step.address), step.depth) for step in flow.steps] == [
        ("stem", 0),
        ("idle", 0),  # a Sequential with nothing inside is a layer
        *[("inner.0.0", 2), ("inner.0.1", 2), ("inner.1", 1)],
        *[("inner.0.0#1", 2), ("inner.0.1#1", 2), ("inner.1#1", 1)],
    ]
    assert [(str(b.address), b.depth, b.first, b.last) for b in flow.blocks] == [
        ("inner", 0, 3, 5),
        ("inner.0", 1, 3, 4),
        ("inner#1", 0, 6, 8),
        ("inner.0#1", 1, 6, 7),
        ("passed", 0, 9, 8),
    ]
    assert [(b.input_shapes, b.output_shapes) for b in flow.blocks[1:3]] == [
        ("1×3×16×16", "1×3×14×14"),
        ("1×3×14×14", "1×3×12×12"),
    ]
    assert {b.kind for b in flow.blocks} == {"Sequential", "Unused"}


@pytest.mark.parametrize("kind", REMEMBERING)
def test_each_timed_pass_is_a_fresh_networks(kind: type[Odd]) -> None:
    model = as_model(seeded(kind))
    flow = trace_execution(model, prepare(model, random_input(0)))
    assert [str(step.address) for step in flow.steps] == ["conv1", "conv2", "head"]
    assert [len(step.seconds) for step in flow.steps] == [3, 3, 3]
