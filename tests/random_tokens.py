"""Blocks whose channels are last: maps, tokens and windows, with attention of all kinds.

Each knows which cell of the map that it is given stands at which place of what its layers put out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.types import VECTORS, Activation
from tests.plain_hooks import equal
from tests.random_blocks import block
from tests.random_operations import WIDTH

_SIDE = 2  # of windows

Pair = tuple[Callable[[Tensor], Tensor], Callable[[Tensor, tuple[int, int]], Tensor]]
"""Makes something else of maps, ``(N, C, H, W)``, and back, given the rows and columns."""


def _rows(x: Tensor) -> Tensor:
    return x.flatten(2).transpose(1, 2)


def _of_rows(tokens: Tensor, size: tuple[int, int]) -> Tensor:
    return tokens.transpose(1, 2).unflatten(2, size)  # type: ignore[no-any-return, no-untyped-call]


def _windows(x: Tensor) -> Tensor:
    padded = F.pad(x, (0, x.shape[3] % _SIDE, 0, x.shape[2] % _SIDE))
    count, channels, rows, columns = padded.shape
    parts = padded.view(count, channels, rows // _SIDE, _SIDE, columns // _SIDE, _SIDE)
    return parts.permute(0, 2, 4, 3, 5, 1).reshape(-1, _SIDE**2, channels)


def _of_windows(windows: Tensor, size: tuple[int, int]) -> Tensor:
    rows, columns = (-(-side // _SIDE) for side in size)
    channels = windows.shape[-1]
    parts = windows.view(-1, rows, columns, _SIDE, _SIDE, channels).permute(0, 5, 1, 3, 2, 4)
    whole = parts.reshape(-1, channels, rows * _SIDE, columns * _SIDE)
    return whole[:, :, : size[0], : size[1]]


ORDERS: Mapping[str, Pair] = {
    "last": (lambda x: x.permute(0, 2, 3, 1), lambda y, _: y.permute(0, 3, 1, 2)),
    "rows": (_rows, _of_rows),
    "windows": (_windows, _of_windows),
    "shifted windows": (
        lambda x: _windows(x.roll((-1, -1), (2, 3))),
        lambda y, size: _of_windows(y, size).roll((1, 1), (2, 3)),
    ),
    "columns": (
        lambda x: _rows(x.transpose(2, 3)),
        lambda y, size: _of_rows(y, (size[1], size[0])).transpose(2, 3),
    ),
    "backwards": (lambda x: _rows(x).flip(1), lambda y, size: _of_rows(y.flip(1), size)),
    "columns before rows": (
        lambda x: x.permute(0, 3, 2, 1),
        lambda y, _: y.permute(0, 3, 2, 1),
    ),
    "mirrored": (lambda x: _rows(x.flip(3)), lambda y, size: _of_rows(y, size).flip(3)),
}


class Arranged(nn.Module):
    """A norm, attention and a small network on what one of `ORDERS` makes of a map."""

    def __init__(self, order: str, attention: int, prefix: int = 0, *, turns: bool = False) -> None:
        super().__init__()
        self.order, self.prefix, self.turns, self.kind = order, prefix, turns, attention
        self.token = nn.Parameter(torch.randn(1, prefix, WIDTH))
        self.norm = nn.LayerNorm(WIDTH)
        if attention == 1:
            self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        elif attention > 1:
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.proj = nn.Linear(WIDTH, WIDTH)
        self.again = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.act, self.drop = nn.GELU(), nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        tokens = self._arranged(x)
        tokens = tokens + self._mixed(self.norm(tokens))
        if self.turns:
            tokens = tokens.flip(1)
        tokens = self.drop(tokens + self.down(self.act(self.up(self.again(tokens)))))
        if self.turns:
            tokens = tokens.flip(1)
        back = ORDERS[self.order][1](tokens[:, self.prefix :], (x.shape[2], x.shape[3]))
        return x + back

    def _arranged(self, x: Tensor) -> Tensor:
        tokens = ORDERS[self.order][0](x)
        if not self.prefix:
            return tokens
        return torch.cat([self.token.to(x).expand(len(tokens), -1, -1), tokens], 1)

    def _mixed(self, tokens: Tensor) -> Tensor:
        if self.kind == 0:
            return torch.zeros_like(tokens)
        flat = tokens.flatten(1, -2)
        if self.kind == 1:
            mixed: Tensor = self.attention(flat, flat, flat, need_weights=False)[0]
            return mixed.reshape(tokens.shape)
        q, k, v = self.qkv(tokens).flatten(1, -2).chunk(3, -1)
        if self.kind == 2:
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            mixed = (q @ k.transpose(1, 2) / WIDTH**0.5).softmax(-1) @ v
        return self.proj(mixed.reshape(tokens.shape))  # type: ignore[no-any-return]

    def cells(self, rows: int, columns: int) -> dict[str, Tensor]:
        """Which cell stands at each place of what each layer puts out, by name; -1 where none."""
        numbers = torch.arange(1.0, rows * columns + 1).view(1, 1, rows, columns)
        places = ORDERS[self.order][0](numbers)[..., 0].long() - 1
        if self.prefix:
            places = torch.cat([places.new_full((len(places), self.prefix), -1), places], 1)
        turned = places.flip(1) if self.turns else places
        before = ("norm", "qkv", "proj", "attention")
        after = ("again", "up", "act", "down", "drop")
        return dict.fromkeys(before, places) | dict.fromkeys(after, turned)


def are_where_they_lie(recorded: Activation, places: Tensor) -> bool:
    """Whether the maps, if they are said to be some, have each cell where it is."""
    if recorded.layout.order in {"", VECTORS} or recorded.values.ndim != 3:
        return True
    channels = recorded.raw.shape[-1]
    vectors, cells = recorded.raw.reshape(-1, channels), places.flatten()
    if len(vectors) != len(cells):
        return False
    truth = torch.zeros(int(cells.max()) + 1, channels)
    truth[cells[cells >= 0]] = vectors[cells >= 0]
    rows, columns = recorded.values.shape[1:]
    if rows * columns != len(truth):
        return False
    return equal(recorded.values, truth.T.reshape(channels, rows, columns))


@block
def Tokens(number: int) -> Any:  # noqa: N802 - a block goes by its name
    return Arranged("rows", number % 4, prefix=(0, 1, 2)[number % 3])


@block
def LastAttends(number: int) -> Any:  # noqa: N802
    return Arranged("last", number % 4)


@block
def Windowed(number: int) -> Any:  # noqa: N802
    return Arranged(("windows", "shifted windows")[number % 2], number // 2 % 4)


@block
def OddOrders(number: int) -> Any:  # noqa: N802
    """Tokens in an order that no map has, or turned around after they were mixed."""
    odd = tuple(ORDERS)[4:]
    if number >= 6:
        return Arranged("rows", number % 4, prefix=number % 2, turns=True)
    return Arranged(odd[number % 4], (number + 1) % 4)


SHARED = ("again", "up", "act", "drop")


class TwoOrders(nn.Module):
    """Two blocks of different layouts, with layers that both use."""

    def __init__(self, orders: tuple[str, str], attention: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Sharing(order, attention) for order in orders)
        for name in SHARED:
            setattr(self.blocks[1], name, self.blocks[0].get_submodule(name))

    def forward(self, x: Tensor) -> Tensor:
        for each in self.blocks:
            x = each(x)
        return x


class _Sharing(Arranged):
    def cells(self, rows: int, columns: int) -> dict[str, Tensor]:
        """Those of its own layers: how often the others ran before, it does not know."""
        own = super().cells(rows, columns)
        return {name: places for name, places in own.items() if name not in SHARED}


@block
def UsedInTwoLayouts(number: int) -> Any:  # noqa: N802
    orders = tuple(ORDERS)
    return TwoOrders((orders[number % 4], orders[(number // 2 + 1) % len(orders)]), number % 4)
