"""What a cell that is changed proves of what lies behind it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hookviz.capturing.moving import proven
from hookviz.types import Layout
from tests.networks import as_model, hook_count, seeded

FIRST = Layout("channels first")
TOKENS = Layout("tokens", grid=(2, 2))
WITH_CLASS = Layout("tokens", prefix_tokens=1, grid=(2, 2))


class Behind(nn.Module):
    """A convolution, and a layer that is given what `make` makes of its maps."""

    def __init__(self, make: Callable[[Tensor], Tensor], calls: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 8, 8)
        self.leaf = nn.Identity()
        self.make, self.calls, self.ran = make, calls, 0

    def forward(self, images: Tensor) -> Tensor:
        self.ran = len(images)
        tokens = self.make(self.conv(images))
        for _ in range(self.calls):
            self.leaf(tokens)
        if self.calls == 1:
            raise AssertionError("the pass has to end before")
        return tokens.flatten(1)


def found(make: Callable[[Tensor], Tensor], guess: Layout) -> frozenset[Layout]:
    model = as_model(seeded(lambda: Behind(make)))
    before = [value.clone() for value in model.network.state_dict().values()]
    layouts = proven(model, (3, 16, 16), {("conv", 0): FIRST}, {("leaf", 0): guess})
    assert all(map(torch.equal, model.network.state_dict().values(), before))
    assert hook_count(model.network) == 0
    return layouts


def by_rows(maps: Tensor) -> Tensor:
    return maps.flatten(2).transpose(1, 2)


def behind_one(tokens: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(tokens[:, :1]), tokens], 1)


@pytest.mark.parametrize(
    ("make", "guess", "holds"),
    [
        (by_rows, TOKENS, True),
        (lambda maps: behind_one(by_rows(maps)), WITH_CLASS, True),
        (lambda maps: behind_one(by_rows(maps)).flip(1), WITH_CLASS, False),
        (lambda maps: behind_one(by_rows(maps)), TOKENS, False),
        (lambda maps: by_rows(maps.transpose(2, 3)), TOKENS, False),
        (lambda maps: by_rows(maps.flip(2)), TOKENS, False),
        (lambda maps: by_rows(maps.flip(3)), TOKENS, False),
        (lambda maps: by_rows(maps).flip(1), TOKENS, False),
        (lambda maps: by_rows(maps).softmax(1), TOKENS, False),
        (lambda maps: by_rows(maps) * 0, TOKENS, False),
        (lambda maps: by_rows(maps).int(), TOKENS, False),
        (lambda maps: by_rows(maps)[:1], TOKENS, False),
        (lambda maps: maps.permute(0, 2, 3, 1), Layout("channels last", grid=(2, 2)), True),
        (lambda maps: maps.permute(0, 3, 2, 1), Layout("channels last", grid=(2, 2)), False),
    ],
)
def test_a_layout_holds_where_just_that_cell_moves(
    make: Callable[[Tensor], Tensor], guess: Layout, *, holds: bool
) -> None:
    assert found(make, guess) == ({guess} if holds else set())


def test_it_has_to_hold_at_every_call_before_cells_are_mixed() -> None:
    class Turning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.leaf = nn.Conv2d(3, 4, 8, 8), nn.Identity()

        def forward(self, images: Tensor) -> Tensor:
            tokens = self.leaf(by_rows(self.conv(images)))
            turned: Tensor = self.leaf(tokens.flip(1))
            return turned.flatten(1)

    model, guesses = as_model(seeded(Turning)), {("leaf", 0): TOKENS}
    known = {("conv", 0): FIRST}
    assert proven(model, (3, 16, 16), known, guesses) == {TOKENS}
    assert proven(model, (3, 16, 16), known, guesses | {("leaf", 1): TOKENS}) == set()


def test_without_a_guess_nothing_runs() -> None:
    model = as_model(seeded(lambda: Behind(by_rows)))
    assert proven(model, (3, 16, 16), {("conv", 0): FIRST}, {}) == set()
    assert model.network.ran == 0
