"""Where tensors come from, by what functions read and write, told by networks made for it."""

import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.followed_pass import follow_pass
from hookviz.explaining.provenance import IMAGE
from tests.networks import as_model, random_input, seeded


class Two(nn.Module):
    """Two convolutions of the image, which subclasses bring together."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 4, 4), nn.Conv2d(3, 4, 4, 4)
        self.c = nn.Conv2d(4, 2, 1)
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)


def ways(network: type[nn.Module]) -> list[tuple[str, set[int]]]:
    model = as_model(seeded(network))
    trace = follow_pass(model, prepare(model, random_input(0)), joins=True)
    return [(str(step.address), set(step.sources)) for step in trace.steps[2:]]


def test_what_lends_its_shape_is_no_source() -> None:
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

    assert ways(Shapes) == [("c", {1})]


def test_what_is_written_into_a_part_is_in_the_whole() -> None:
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

    assert ways(Parts) == [("add", {1, 2}), ("c", {1, 3})]
    assert ways(Filled) == [("setitem", {1, 2}), ("c", {3})]
    assert ways(Within) == [("relu", {1}), ("c", {3})]


def test_a_block_without_layers_is_one_step_that_joins() -> None:
    class Crossed(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = (each(images).flatten(2).transpose(1, 2) for each in (self.a, self.b))
            mixed: Tensor = self.attend(a, b, b)[0] + a
            return mixed

    assert ways(Crossed) == [("attend", {1, 2}), ("add", {3, 1})]


def test_the_image_goes_where_it_is_read() -> None:
    class Again(Two):
        def forward(self, images: Tensor) -> Tensor:
            a, b = self.a(images), self.b(images)
            small = nn.functional.avg_pool2d(images, 4).mean(1, keepdim=True)
            maps: Tensor = self.c((a + b) * small)
            return maps

    assert ways(Again) == [("add", {1, 2}), ("mul", {3, IMAGE}), ("c", {4})]
