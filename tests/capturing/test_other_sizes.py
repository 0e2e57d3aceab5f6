"""What makes an axis longer, and how far passes at other sizes go."""

import torch
from torch import Tensor, nn

from hookviz.capturing.other_sizes import Role, at_other_sizes, roles_of
from hookviz.capturing.watched_pass import watch
from tests.networks import as_model, seeded


def test_an_axis_grows_with_rows_columns_either_or_none() -> None:
    assert roles_of([(1, 4, 8, 6, 48), (1, 4, 9, 6, 54), (1, 4, 8, 7, 56)]) == [
        *(Role.SAME, Role.SAME, Role.ROWS, Role.COLUMNS, Role.BOTH),
    ]


def test_what_shrinks_or_goes_is_none() -> None:
    assert roles_of([(1, 4), (1, 3), (1, 4)]) == [Role.SAME, None]
    assert roles_of([(1, 4), (1, 4, 1), (1, 4)]) == [None]


class Sized(nn.Module):
    def __init__(self, sides: tuple[int, ...]) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 4, 3), nn.ReLU()
        self.sides, self.seen = sides, list[tuple[int, ...]]()

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        if any(side not in self.sides for side in images.shape[2:]):
            raise ValueError("another size")
        acted: Tensor = self.act(maps)
        return acted.mean((2, 3))


def shapes(sides: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    network = seeded(lambda: Sized(sides))
    calls = watch(network, torch.zeros(1, 3, 16, 16)).calls
    others = at_other_sizes(as_model(network), (3, 16, 16), calls, len(calls))
    return [tuple(each.shapes[()] for each in pair) for pair in others]


def test_shapes_of_a_taller_and_a_wider_input() -> None:
    pair = ((1, 4, 78, 14), (1, 4, 14, 78))
    assert shapes((16, 80)) == [pair, pair]


def test_twice_the_size_where_the_network_refuses_another() -> None:
    pair = ((1, 4, 30, 14), (1, 4, 14, 30))
    assert shapes((16, 32)) == [pair, pair]


def test_they_go_as_far_as_the_network_does() -> None:
    assert shapes((16,)) == [((1, 4, 78, 14), (1, 4, 14, 78))]
