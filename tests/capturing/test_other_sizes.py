"""What a larger input tells of axes, and how far its pass goes."""

import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.other_sizes import LargerInput, at_larger_size
from hookviz.capturing.watched_pass import watch
from hookviz.types import FIRST, LAST, Layout
from tests.networks import as_model, seeded

IMAGE = LargerInput((3, 224, 224))  # 288 × 352
VIDEO = LargerInput((3, 8, 224, 224))
SOUND = LargerInput((2, 640))  # 704


@pytest.mark.parametrize(
    ("shape", "larger"),
    [
        ((3, 224, 224), (3, 288, 352)),
        ((3, 96, 160), (3, 224, 224)),
        ((3, 8, 64, 32), (3, 8, 128, 160)),
        ((2, 640), (2, 704)),
    ],
)
def test_sides_grow_by_different_shares(shape: tuple[int, ...], larger: tuple[int, ...]) -> None:
    assert LargerInput(shape).shape == larger


@pytest.mark.parametrize(
    ("larger", "before", "after", "layout"),
    [
        (IMAGE, (1, 8, 56, 56), (1, 8, 72, 88), Layout(FIRST)),
        (IMAGE, (1, 56, 56, 8), (1, 72, 88, 8), Layout(LAST)),
        (IMAGE, (1, 8, 16, 16), (1, 8, 20, 25), Layout(FIRST)),  # patches of 14 pixels
        (IMAGE, (1, 8, 4, 4), (1, 8, 5, 6), Layout(FIRST)),  # a stride of 64
        (IMAGE, (1, 8, 214, 214), (1, 8, 278, 342), Layout(FIRST)),  # no padding
        (IMAGE, (1, 8, 56, 56), (1, 8, 88, 72), None),  # columns before rows
        (IMAGE, (1, 8, 1, 1), (1, 8, 2, 2), None),  # either
        (IMAGE, (1, 8, 28, 1), (1, 8, 40, 1), None),  # rows and columns behind each other
        (IMAGE, (1, 2, 196, 196), (1, 2, 396, 396), None),  # attention
        (IMAGE, (1, 2, 196, 391), (1, 2, 396, 791), None),  # distances between tokens
        (IMAGE, (1, 8, 4, 196), (1, 8, 4, 396), None),  # patches
        (IMAGE, (1, 196, 8), (1, 396, 8), None),
        (IMAGE, (4, 8, 28, 28), (6, 8, 28, 28), None),  # windows
        (VIDEO, (1, 8, 4, 56, 56), (1, 8, 4, 72, 88), Layout(FIRST)),
        (VIDEO, (1, 4, 56, 56, 8), (1, 4, 72, 88, 8), Layout(LAST, frames=4)),
        (SOUND, (1, 8, 320), (1, 8, 352), Layout(FIRST)),
        (SOUND, (1, 320, 8), (1, 352, 8), None),
    ],
)
def test_rows_and_columns_are_told_by_how_much_they_grow(
    larger: LargerInput, before: tuple[int, ...], after: tuple[int, ...], layout: Layout | None
) -> None:
    assert larger.layout(before, after) == layout


@pytest.mark.parametrize(
    ("order", "before", "after", "allowed"),
    [
        (FIRST, (1, 8, 56, 1), (1, 8, 72, 1), True),  # a mean over columns
        (FIRST, (1, 8, 1, 1), (1, 8, 1, 1), True),
        (FIRST, (1, 8, 14, 56), (1, 8, 18, 88), True),  # rows of a larger stride than columns
        (FIRST, (1, 8, 56, 56), (1, 8, 88, 72), False),
        (FIRST, (1, 56, 56, 8), (1, 72, 88, 8), False),
        (LAST, (1, 56, 56, 8), (1, 72, 88, 8), True),
        (FIRST, (1, 8, 28, 1), (1, 8, 40, 1), False),
        (FIRST, (1, 8, 4, 49), (1, 8, 4, 99), False),
        (FIRST, (1, 8, 56, 56), (1, 8, 40, 88), False),  # it shrinks
        (FIRST, (2, 8, 56, 56), (3, 8, 56, 56), False),
    ],
)
def test_what_is_followed_may_be_contradicted(
    order: str, before: tuple[int, ...], after: tuple[int, ...], *, allowed: bool
) -> None:
    assert IMAGE.allows(order, before, after, [((14, 18), (14, 22))]) == allowed


class Sized(nn.Module):
    def __init__(self, sides: tuple[int, ...]) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 4, 3), nn.ReLU()
        self.sides, self.ran = sides, 0

    def forward(self, images: Tensor) -> Tensor:
        self.ran += 1
        maps = self.conv(images)
        if any(side not in self.sides for side in images.shape[2:]):
            raise ValueError("another size")
        acted: Tensor = self.act(maps)
        return acted.mean((2, 3))


@pytest.mark.parametrize(("sides", "calls"), [((16, 80, 144), 2), ((16,), 1)])
def test_one_pass_goes_as_far_as_the_network_does(sides: tuple[int, ...], calls: int) -> None:
    network = seeded(lambda: Sized(sides))
    watched = watch(network, torch.zeros(1, 3, 16, 16)).calls
    larger, others = at_larger_size(as_model(network), (3, 16, 16), watched)
    assert larger.shape == (3, 80, 144)
    assert [each.shapes[()] for each in others] == [(1, 4, 78, 142)] * calls
    assert network.ran == 2


def test_what_takes_another_way_at_another_size_tells_no_more() -> None:
    class Resizes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool, self.act = nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ReLU()

        def forward(self, images: Tensor) -> Tensor:
            maps = self.conv(images)
            acted: Tensor = self.act(self.pool(maps) if maps.shape[2] > 20 else maps)
            return acted

    network = seeded(Resizes)
    watched = watch(network, torch.zeros(1, 3, 16, 16)).calls
    _, others = at_larger_size(as_model(network), (3, 16, 16), watched)
    assert [each.layer for each in others] == ["conv"]
