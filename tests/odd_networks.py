"""Networks with one layer of an odd kind, and what that layer puts out, told by other means."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

ODD = "odd"
"""What the odd layer is called."""


class Odd(nn.Module):
    """A convolution with a ReLU, the odd layer, and five classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu = nn.ReLU()
        self.head = nn.Linear(4, 5)
        self.odd = self.make()

    def make(self) -> nn.Module:
        return nn.Identity()

    def use(self, maps: Tensor) -> Tensor:
        return maps

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.use(self.relu(self.conv(images))).mean((2, 3)))
        return scores


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, maps: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(maps)))


class OfFunction(nn.Module):
    """A layer that calls a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, maps: Tensor) -> Tensor:
        return self.function(maps)


class Scripted(Odd):
    def make(self) -> nn.Module:
        block: nn.Module = torch.jit.script(_Block().eval())
        return block

    def use(self, maps: Tensor) -> Tensor:
        block: Tensor = self.odd(maps)
        return block


class Traced(Scripted):
    def make(self) -> nn.Module:
        block: nn.Module = torch.jit.trace(  # type: ignore[no-untyped-call]
            _Block().eval(), torch.zeros(1, 4, 14, 14)
        )
        return block


def _sparse(maps: Tensor) -> Tensor:
    return maps.to_sparse()


class Sparse(Odd):
    def make(self) -> nn.Module:
        return OfFunction(_sparse)

    def use(self, maps: Tensor) -> Tensor:
        numbers: Tensor = self.odd(maps).to_dense()
        return numbers


def _quantised(maps: Tensor) -> Tensor:
    return torch.quantize_per_tensor(maps, 0.1, 0, torch.quint8)


class Quantised(Odd):
    def make(self) -> nn.Module:
        return OfFunction(_quantised)

    def use(self, maps: Tensor) -> Tensor:
        numbers: Tensor = self.odd(maps).dequantize()
        return numbers


def _hollow(maps: Tensor) -> Tensor:
    return maps.to("meta")


class OnMeta(Odd):
    def make(self) -> nn.Module:
        return OfFunction(_hollow)

    def use(self, maps: Tensor) -> Tensor:
        scaled: Tensor = maps * self.odd(maps).shape[1]
        return scaled


def _nested(maps: Tensor) -> Tensor:
    return torch.nested.nested_tensor(list(maps.unbind()))


class Nested(Odd):
    def make(self) -> nn.Module:
        return OfFunction(_nested)

    def use(self, maps: Tensor) -> Tensor:
        padded: Tensor = self.odd(maps).to_padded_tensor(0.0)
        return padded


def _ragged(maps: Tensor) -> Tensor:
    return torch.nested.nested_tensor([maps[0], maps[0, :, :5]])


class Ragged(Odd):
    """Of parts that differ in shape, which no tensor holds as they are."""

    def make(self) -> nn.Module:
        return OfFunction(_ragged)

    def use(self, maps: Tensor) -> Tensor:
        total: Tensor = maps + self.odd(maps).to_padded_tensor(0.0)[:1]
        return total


class Mapped(Odd):
    def make(self) -> nn.Module:
        return nn.Conv2d(4, 4, 3)

    def use(self, maps: Tensor) -> Tensor:
        mapped: Tensor = torch.vmap(self.odd)(maps)
        return mapped


class Masked(Odd):
    """A transformer encoder with a padding mask, which makes nested tensors of its own."""

    def make(self) -> nn.Module:
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        return nn.TransformerEncoder(layer, 2)

    def use(self, maps: Tensor) -> Tensor:
        tokens = maps.flatten(2).transpose(1, 2)
        mask = torch.arange(tokens.shape[1], device=maps.device)[None] >= 100
        seen: Tensor = self.odd(tokens, src_key_padding_mask=mask.expand(len(maps), -1))
        return seen.transpose(1, 2).reshape(maps.shape)


class ComplexConv(Odd):
    def make(self) -> nn.Module:
        return nn.Conv2d(4, 4, 3, dtype=torch.complex64)

    def use(self, maps: Tensor) -> Tensor:
        magnitudes: Tensor = self.odd(maps.to(torch.complex64)).abs()
        return magnitudes


class ComplexLinear(Odd):
    def make(self) -> nn.Module:
        return nn.Linear(4, 4, dtype=torch.complex64)

    def use(self, maps: Tensor) -> Tensor:
        magnitudes: Tensor = self.odd(maps.movedim(1, -1).to(torch.complex64)).abs()
        return magnitudes.movedim(-1, 1)


class Unbatched(Odd):
    """A convolution of one channel that is called without a batch."""

    def make(self) -> nn.Module:
        return nn.Conv2d(4, 1, 3, padding=1)

    def use(self, maps: Tensor) -> Tensor:
        one: Tensor = self.odd(maps[0])
        return one[None].expand(-1, 4, -1, -1)


class ChannelsLast(Odd):
    """A dropout behind a linear layer, of as many rows as columns as channels."""

    def make(self) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 14), nn.GELU(), nn.Dropout(), nn.Linear(14, 4))

    def use(self, maps: Tensor) -> Tensor:
        last: Tensor = self.odd(maps.permute(0, 2, 3, 1))
        return last.permute(0, 3, 1, 2)


class InDouble(Odd):
    def __init__(self) -> None:
        super().__init__()
        self.double()


KINDS: dict[str, type[Odd]] = {
    kind.__name__: kind
    for kind in (
        *(Scripted, Traced, Sparse, Quantised, OnMeta, Nested, Ragged, Mapped, Masked),
        *(ComplexConv, ComplexLinear, Unbatched, ChannelsLast, InDouble),
    )
}


def dense(output: Any) -> Tensor | None:
    """What a tensor of another kind stands for, by torch's own words for it; None of no numbers."""
    if not isinstance(output, Tensor) or output.is_meta:
        return None
    if output.is_nested:
        alike = len({part.shape for part in output.unbind()}) == 1
        return output.to_padded_tensor(0.0) if alike else None
    if output.is_quantized:
        return output.q_scale() * (output.int_repr() - output.q_zero_point()).float()
    return output.to_dense() if output.layout != torch.strided else output
