"""What is seen of a pass, and whether every image runs the same."""

import torch
from torch import Tensor, nn

from hookviz.capturing.watched_pass import watch, watch_in_general
from tests.networks import Tiny, seeded


def test_calls_stand_in_the_order_in_which_they_return() -> None:
    watched = watch(seeded(Tiny).eval(), torch.zeros(1, 3, 16, 16))
    assert [call.layer for call in watched.calls] == ["conv1", "relu", "conv2", "relu", "head"]
    assert watched.calls[0].shapes == {(): (1, 4, 16, 16)}
    assert watched.calls[0].taken == (1, 3, 16, 16)
    assert (watched.scores, watched.dimensions, watched.is_pure) == (5, 4, False)
    assert watched.overwritten == {"conv1", "conv2"}


def test_a_pass_is_pure_where_it_only_computes() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            maps: Tensor = self.conv(images)
            return maps if maps.mean() > 0 else -maps

    images = torch.zeros(1, 3, 16, 16)
    assert watch_in_general(seeded(Tiny).eval(), images).is_pure
    assert not watch_in_general(seeded(Looking), images).is_pure
