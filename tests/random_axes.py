"""Blocks whose tensors have their axes in another order, and those of a sequence.

Each makes three places of a map, as many as a trial has images in a batch.
"""

from typing import Any

import torch
from torch import Tensor, nn

from tests.random_blocks import block
from tests.random_operations import WIDTH

PLACES = 3


def _places(x: Tensor) -> Tensor:
    """Three places along the columns, ``(N, C, 3)``."""
    return nn.functional.adaptive_avg_pool2d(x, (1, PLACES)).squeeze(2)


class _Table(nn.Module):
    """A position code, which has no batch: (1, L, C), or (L, 1, C), or (L, C)."""

    def __init__(self, number: int) -> None:
        super().__init__()
        shapes = [(1, PLACES, WIDTH), (PLACES, 1, WIDTH), (PLACES, WIDTH)]
        self.codes = nn.Parameter(torch.randn(shapes[number % 3]))

    def forward(self) -> Tensor:
        return self.codes * 0.5


@block
class LengthFirst(nn.Module):
    """(L, N, C), as torch's attention has it by default."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.table = _Table(1)
        self.mixes = number % 2 == 0
        self.attention = nn.MultiheadAttention(WIDTH, 2)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 8)

    def forward(self, x: Tensor) -> Tensor:
        tokens = _places(x).permute(2, 0, 1) + self.table()
        mixed = self.attention(tokens, tokens, tokens)[0] if self.mixes else self.layer(tokens)
        return x + mixed.mean(0)[:, :, None, None]  # type: ignore[no-any-return]


@block
class AddsPlaces(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.table = _Table(2 * (number % 2))
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.mix(_places(x).transpose(1, 2) + self.table())
        return x + tokens.mean(1)[:, :, None, None]  # type: ignore[no-any-return]


@block
class ChannelsLast(nn.Module):
    """(N, H, W, C) between two turns, as in ConvNeXt."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.act = nn.ReLU(inplace=number % 2 == 0)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + self.down(self.act(self.up(y))).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


@block
class OfSteps(nn.Module):
    """Sound: convolutions over ``(N, C, L)`` around layers over ``(N, L, C)``."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.GELU())
        self.norm = nn.LayerNorm(WIDTH) if number % 2 else nn.Identity()
        self.mix, self.drop = nn.Linear(WIDTH, WIDTH), nn.Dropout(inplace=number % 3 == 0)
        self.back = nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.drop(self.conv(x.flatten(2)).transpose(1, 2))
        steps = self.drop(self.mix(self.norm(steps)))
        return x + self.back(steps.transpose(1, 2)).view(x.shape)  # type: ignore[no-any-return]


@block
class ChannelsAsImages(nn.Module):
    """Folds the channels into the batch: (N·C, 1, H, W)."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)
        self.keeps_batch = number % 2 == 0

    def forward(self, x: Tensor) -> Tensor:
        channels = x.flatten(0, 1).unsqueeze(1)
        if self.keeps_batch:
            return self.conv(channels).view(x.shape)  # type: ignore[no-any-return]
        # each without a batch, (1, H, W): one channel, not one image
        return torch.stack([self.conv(channel) for channel in channels]).view(x.shape)


@block
class PaddedEncoder(nn.Module):
    """A transformer with a mask over places that are padding: nested tensors inside."""

    padding: Tensor

    def __init__(self, number: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1 + number % 2)
        self.register_buffer("padding", torch.tensor([[False, False, True]]))

    def forward(self, x: Tensor) -> Tensor:
        tokens = _places(x).transpose(1, 2)
        padding = self.padding.expand(len(tokens), -1)
        encoded: Tensor = self.encoder(tokens, src_key_padding_mask=padding)
        return x + encoded[:, :2].mean(1)[:, :, None, None]


@block
class RecurrentPlaces(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        kind = (nn.RNN, nn.GRU, nn.LSTM)[number % 3]
        self.rnn = kind(WIDTH, WIDTH // 2, num_layers=2, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        states, last = self.rnn(_places(x).permute(2, 0, 1))
        final = last[0] if isinstance(last, tuple) else last
        return x + states.mean(0)[:, :, None, None] + final.mean((0, 2))[:, None, None, None]  # type: ignore[no-any-return]


@block
class ReadsColumns(nn.Module):
    """Rows are joined and columns read one after the other, as a CRNN reads text."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.rnn = nn.LSTM(WIDTH, WIDTH, bidirectional=number % 2 == 0)
        self.head = nn.Linear(WIDTH * (2 - number % 2), WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        columns = self.conv(x).relu().mean(2).permute(2, 0, 1)
        scores: Tensor = self.head(self.rnn(columns)[0])
        return x + scores.permute(1, 2, 0).unsqueeze(2)


@block
class RecurrentCell(nn.Module):
    """A recurrence by hand: one module that is called for each column."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.cell: Any = (nn.GRUCell if number % 2 else nn.RNNCell)(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), WIDTH)
        for position in _places(x).unbind(2):
            state = self.cell(position, state)
        return x * state.sigmoid()[:, :, None, None]
