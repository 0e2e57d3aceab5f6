"""What is seen of a pass, and whether every image runs the same."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.watched_pass import watch
from tests.networks import Tiny, seeded

IMAGES = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_calls_stand_in_the_order_in_which_they_return() -> None:
    watched = watch(seeded(Tiny).eval(), torch.zeros(1, 3, 16, 16))
    assert [call.layer for call in watched.calls] == ["conv1", "relu", "conv2", "relu", "head"]
    assert watched.calls[0].shapes == {(): (1, 4, 16, 16)}
    assert watched.calls[0].taken == (1, 3, 16, 16)
    assert (watched.scores, watched.shape, watched.is_static) == (5, (3, 16, 16), True)
    assert watched.overwritten == {"conv1", "conv2"}
    assert watched.keeps_batch


class _Does(nn.Module):
    """Makes something of a layer's maps; with torch's own attention beside it where asked."""

    def __init__(self, do: Callable[[Tensor], Any], *, attends: bool = False) -> None:
        super().__init__()
        self.conv, self.do = nn.Conv2d(3, 4, 3), do
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True) if attends else None

    def forward(self, images: Tensor) -> Any:
        maps: Tensor = self.conv(images)
        if self.attention is not None:
            tokens = maps.flatten(2).transpose(1, 2)
            maps = maps + self.attention(tokens, tokens, tokens)[0].mean()
        return self.do(maps)


READS: dict[str, Callable[[Tensor], Any]] = {
    "a comparison": lambda maps: maps if maps.mean() > 0 else -maps,
    "item": lambda maps: maps * maps.mean().item(),
    "a range": lambda maps: [maps for _ in range(int(maps.abs().max()))],
    "an index": lambda maps: maps[:, maps.argmax() % 4],
    "equal": lambda maps: maps * torch.equal(maps, maps),
    "in": lambda maps: maps * (0.0 in maps),
    "a mask": lambda maps: maps[maps > 0],
    "nonzero": lambda maps: maps.nonzero(),
    "unique": lambda maps: maps.unique(),  # type: ignore[no-untyped-call]
    "where": lambda maps: torch.where(maps > 0),
}
EXPORTS: dict[str, Callable[[Tensor], Any]] = {
    "a list": lambda maps: maps * len(maps.tolist()),
    "NumPy": lambda maps: maps * float(maps.detach().numpy().max()),
}
KEEPS: dict[str, Callable[[Tensor], Any]] = {
    "a gate": lambda maps: maps * maps.mean((2, 3), keepdim=True).sigmoid(),
    "where of three": lambda maps: torch.where(maps > 0, maps, -maps),
    "an index of numbers": lambda maps: maps[:, torch.tensor([2, 0])],
    "its shape": lambda maps: maps if maps.shape[2] > 8 else -maps,
    "sparse": lambda maps: maps.to_sparse().to_dense(),
    "vmap": torch.vmap(torch.relu),
}


@pytest.mark.parametrize("attends", [False, True])
@pytest.mark.parametrize("name", [*READS, *KEEPS])
def test_a_pass_that_reads_no_value_is_static(name: str, *, attends: bool) -> None:
    do = (READS | KEEPS)[name]
    network = seeded(lambda: _Does(do, attends=attends)).eval()
    with torch.no_grad():
        assert watch(network, IMAGES).is_static == (name in KEEPS)


@pytest.mark.parametrize("name", EXPORTS)
def test_values_that_are_handed_out_are_read(name: str) -> None:
    network = seeded(lambda: _Does(EXPORTS[name]))
    with torch.no_grad():
        assert not watch(network, IMAGES).is_static


def test_more_rows_than_images_are_no_batch() -> None:
    assert not watch(seeded(lambda: _Does(lambda maps: maps.view(2, -1))), IMAGES).keeps_batch
