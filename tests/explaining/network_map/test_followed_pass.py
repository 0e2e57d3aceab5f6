"""Where tensors come from, by what functions read and write, and how long each call took."""

import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.network_map.followed_pass import IMAGE, follow_pass, trace_execution
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded
from tests.odd_batches import REMEMBERING, Odd


class Two(nn.Module):
    """Two convolutions of the image, which subclasses bring together."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 4, 4), nn.Conv2d(3, 4, 4, 4)
        self.c = nn.Conv2d(4, 2, 1)
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)


def ways(network: type[nn.Module]) -> list[tuple[str, set[int]]]:
    model = as_model(seeded(network))
    trace = follow_pass(model, prepare_input(model, random_input(0)), joins=True)
    return [(str(step.address), set(step.sources)) for step in trace.steps[2:]]


def test_each_step_comes_from_what_is_read_and_not_from_what_lends_its_shape() -> None:
    class Shapes(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = self.a(images), self.b(images)
            masked = (
                a
                + b.new_zeros(b.shape)
                + torch.ones_like(b)
                + a.mean((2, 3))[..., None, None].expand_as(b)
            )
            maps: Tensor = self.c(masked)
            return maps

    class Parts(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = self.a(images), self.b(images)
            a[:, :2].add_(b[:, :2])
            maps: Tensor = self.c(a)
            return maps

    class Filled(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = self.a(images), self.b(images)
            both = torch.zeros_like(a)
            both[:, :2], both[:, 2:] = a[:, :2], b[:, 2:]
            maps: Tensor = self.c(both)
            return maps

    class Within(Two):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU(inplace=True)

        def forward(self, images: Tensor) -> Tensor:
            a, _ = self.a(images), self.b(images)
            self.relu(a.flatten(2))
            maps: Tensor = self.c(a)
            return maps

    class Crossed(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = (each(images).flatten(2).transpose(1, 2) for each in (self.a, self.b))
            mixed: Tensor = self.attend(a, b, b)[0] + a
            return mixed

    class Again(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = self.a(images), self.b(images)
            small = nn.functional.avg_pool2d(images, 4).mean(1, keepdim=True)
            maps: Tensor = self.c((a + b) * small)
            return maps

    assert ways(Shapes) == [("c", {1})]
    assert ways(Parts) == [("add", {1, 2}), ("c", {1, 3})]
    assert ways(Filled) == [("setitem", {1, 2}), ("c", {3})]
    assert ways(Within) == [("relu", {1}), ("c", {3})]
    assert ways(Crossed) == [("attend", {1, 2}), ("add", {3, 1})]
    assert ways(Again) == [("add", {1, 2}), ("mul", {3, IMAGE}), ("c", {4})]


def test_every_call_is_timed_three_times(tiny: Model, noise: Tensor) -> None:
    shares: list[float] = []
    steps = trace_execution(tiny, prepare_input(tiny, noise), shares.append).steps
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
    flow = trace_execution(model, prepare_input(model, noise))
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
    flow = trace_execution(model, prepare_input(model, random_input(0)))
    assert [str(step.address) for step in flow.steps] == ["conv1", "conv2", "head"]
    assert [len(step.seconds) for step in flow.steps] == [3, 3, 3]
