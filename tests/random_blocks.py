"""Modules of all kinds that people write: the blocks of random networks.

Each is made from a number that picks among its options, takes a map of `WIDTH` channels and any
size, and gives such a map back. A long file of small things: who adds an odd way to write a module
finds all of them here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, weight_norm

from tests.random_operations import WIDTH

BLOCKS: dict[str, Callable[[int], nn.Module]] = {}


def block(kind: Callable[[int], nn.Module]) -> Any:
    BLOCKS[kind.__name__] = kind
    return kind


@block
def conv(number: int) -> nn.Module:
    options: list[dict[str, Any]] = [
        {},
        {"dilation": 2, "padding": 2},
        {"groups": 2},
        {"groups": WIDTH, "bias": False},
        {"padding": 1, "padding_mode": "reflect"},
        {"padding": 1, "padding_mode": "circular"},
        {"padding": "same", "padding_mode": "replicate"},
        {"stride": 2},
        {"kernel_size": 1, "padding": 0},
    ]
    return nn.Conv2d(WIDTH, WIDTH, **{"kernel_size": 3, "padding": 1} | options[number % 9])


@block
class Pads(nn.Module):
    """Every kind of padding beside that of conv layers."""

    def __init__(self, number: int) -> None:
        super().__init__()
        kinds: list[Callable[[Tensor], Tensor]] = [
            *(nn.ZeroPad2d((1, 0, 2, 0)), nn.ReflectionPad2d(1), nn.ReplicationPad2d(2)),
            *(nn.ConstantPad2d(1, 0.5), nn.CircularPad2d(1)),
            *(partial(F.pad, pad=(1, 2, 0, 1), mode=mode) for mode in _PADDING),
        ]
        self.pad = kinds[number % len(kinds)]
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1 + 2 * (number % 2), padding=number % 2)

    def forward(self, x: Tensor) -> Any:
        return self.conv(self.pad(x) if min(x.shape[2:]) > 2 else x)


_PADDING = ("constant", "reflect", "replicate", "circular")


@block
def transposed_conv(number: int) -> nn.Module:
    return nn.ConvTranspose2d(WIDTH, WIDTH, 3, 1, 1, groups=1 + number % 2)


class OfRows(nn.Module):
    """A conv over one dimension, or three."""

    def __init__(self, number: int) -> None:
        super().__init__()
        kind = nn.Conv3d if number % 2 else nn.Conv1d
        self.conv = kind(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.conv, nn.Conv3d):
            volume: Tensor = self.conv(x[:, :, None])
            return volume.squeeze(2)
        rows: Tensor = self.conv(x.flatten(2))
        return rows.view(x.shape)


block(OfRows)


@block
class TiedWeights(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.second = nn.Conv2d(WIDTH, WIDTH, 3, padding=1 + number % 2, dilation=1 + number % 2)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Any:
        return self.second(F.relu_(self.first(x)))


@block
class TiedModules(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.first = self.again = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.between = nn.Conv2d(WIDTH, WIDTH, 1)
        self.relu = nn.ReLU(inplace=number % 2 == 0)

    def forward(self, x: Tensor) -> Any:
        return self.again(self.relu(self.between(self.relu(self.first(x)))))


@block
class WeightNorm(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        normed = parametrizations.weight_norm if number % 2 else weight_norm
        self.conv = normed(nn.Conv2d(WIDTH, WIDTH, 3, padding=1))

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)


@block
class SpectralNorm(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.moves = number % 2 == 0
        self.conv = parametrizations.spectral_norm(nn.Conv2d(WIDTH, WIDTH, 3, padding=1))

    def forward(self, x: Tensor) -> Any:
        self.conv.train(self.moves)
        return self.conv(x)


class _Counting(nn.Module):
    """Does not forget; as a parametrisation, and as a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, weight: Tensor) -> Tensor:
        self.calls += 1
        return weight / self.calls


@block
class CountingWeights(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        parametrize.register_parametrization(self.conv, "weight", _Counting(), unsafe=True)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)


@block
def norm(number: int) -> nn.Module:
    kinds: list[Callable[[], nn.Module]] = [
        lambda: nn.BatchNorm2d(WIDTH),
        lambda: nn.GroupNorm(2, WIDTH),
        lambda: nn.InstanceNorm2d(WIDTH, track_running_stats=True),
        lambda: nn.LocalResponseNorm(2),
    ]
    return kinds[number % 4]()


@block
class TrainsWhileItRuns(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(WIDTH, momentum=None if number % 2 else 0.3)
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        self.norm.train(x.shape[2] * x.shape[3] > 1)
        return self.conv(self.norm(x))


@block
class NormAndActivation(nn.BatchNorm2d):
    """Parameters of its own and parts, as timm's BatchNormAct2d."""

    def __init__(self, number: int) -> None:
        super().__init__(WIDTH)
        self.act = nn.ReLU(inplace=number % 2 == 0)

    def forward(self, x: Tensor) -> Any:
        return self.act(super().forward(x))


@block
def activation(number: int) -> nn.Module:
    kinds: list[Callable[[], nn.Module]] = [
        lambda: nn.ReLU(inplace=True),
        lambda: nn.LeakyReLU(0.1),
        lambda: nn.LeakyReLU(0.3, inplace=True),
        nn.PReLU,
        lambda: nn.Hardswish(inplace=True),
        lambda: nn.Dropout(0.5, inplace=True),
        lambda: nn.RReLU(inplace=True),
        nn.Softmax2d,
    ]
    return kinds[number % 8]()


@block
class Attention(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.weighs = number % 2 == 0

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        seen, _ = self.attention(tokens, tokens, tokens, need_weights=self.weighs)
        added: Tensor = x + seen.transpose(1, 2).reshape(x.shape)
        return added


@block
class Recurrent(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.rnn = (nn.LSTM if number % 2 else nn.GRU)(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x.flatten(2).transpose(1, 2))
        output: Tensor = states
        return output.transpose(1, 2).reshape(x.shape)


class Parts(NamedTuple):
    first: Tensor
    rest: dict[str, Tensor]


@dataclass
class Pair:
    one: Tensor
    two: tuple[Tensor, Tensor]


class _PutsOutParts(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number % 4

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Any:
        y = x * scale
        kinds = [(x, [y]), {"x": x, "y": y}, Parts(x, {"y": y}), Pair(x, (y, y))]
        return kinds[self.number]


@block
class PartsOfAnOutput(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.parts = _PutsOutParts(number)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.parts(self.conv(input=x), scale=0.5)
        if isinstance(parts, Pair):
            return parts.one.add_(parts.two[1])
        if isinstance(parts, dict):
            return torch.cat([parts["x"][:, :2], parts["y"].relu_()[:, 2:]], 1)
        if isinstance(parts, Parts):
            return parts.first - parts.rest["y"]
        return parts[0].sub_(1) + parts[1][0]  # type: ignore[no-any-return]


@block
class SqueezeAndExcite(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(WIDTH, 2, 1)
        self.excite = nn.Conv2d(2, WIDTH, 1)
        self.in_place = number % 2 == 0

    def forward(self, x: Tensor) -> Any:
        gate = self.excite(F.relu_(self.squeeze(x.mean((2, 3), keepdim=True)))).sigmoid_()
        return x.mul_(gate) if self.in_place else x * gate


@block
class ByDictionary(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number % 2
        self.parts = nn.ModuleDict({key: nn.Conv2d(WIDTH, WIDTH, 1) for key in "ab"})
        self.listed = nn.ModuleList([self.parts["a"], nn.ReLU(True), self.parts["b"]])

    def forward(self, x: Tensor) -> Any:
        x = self.parts["ab"[self.number]](x)
        for part in self.listed:
            x = part(x)
        return x


@block
class HoldsLambdas(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        slope = 0.1 + 0.1 * (number % 3)
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.act: Callable[[Tensor], Tensor] = lambda x: F.leaky_relu(x, slope, inplace=True)
        self.both: Callable[[Tensor], Any] = lambda x: self.act(self.conv(x))

    def forward(self, x: Tensor) -> Any:
        return self.both(x)


@block
class HoldsAMethod(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.plan = [self.one, self.two] if number % 2 else [self.two, self.one]

    def one(self, x: Tensor) -> Any:
        return self.conv(x)

    def two(self, x: Tensor) -> Tensor:
        return x.clamp_(-1, 1)

    def forward(self, x: Tensor) -> Any:
        return self.plan[1](self.plan[0](x))


@block
class ReplacedForward(nn.Module):
    """A layer whose ``forward`` somebody has put a function in place of."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        own = conv.forward

        def twice(x: Tensor) -> Tensor:
            return own(x).mul_(2 + number % 2)

        conv.forward = twice  # type: ignore[assignment,method-assign]

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)


class _Standardised(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        y: Tensor = self._conv_forward(x, weight, self.bias)
        y.data.mul_(0.5)
        return y


@block
def own_conv(number: int) -> nn.Module:
    return _Standardised(WIDTH, WIDTH, 3, padding=1, stride=1 + number % 2)


@block
class SwapsItsLayers(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.other = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        self.conv, self.other = self.other, self.conv
        return self.conv(x)


@block
def resize(number: int) -> nn.Module:
    kinds: list[Callable[[], nn.Module]] = [
        lambda: nn.Upsample(size=(9, 7)),
        lambda: nn.AdaptiveAvgPool2d(6),
        lambda: nn.MaxPool2d(3, 1, 1),
        lambda: nn.Sequential(nn.Conv2d(WIDTH, 4 * WIDTH, 1), nn.PixelShuffle(2), nn.AvgPool2d(2)),
    ]
    return kinds[number % 4]()


@block
class Flips(nn.Module):
    """Two images at once, as test-time augmentation has them."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        both: Tensor = self.conv(torch.cat([x, x.flip(3)]))
        first, second = both.chunk(2)
        return first.add_(second.flip(3)).mul_(0.5)


@block
class WithoutBatch(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.conv(image) for image in x])


@block
class Rows(nn.Module):
    """One layer for each row of cells, given what it made of the row above."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, (1, 3), padding=(0, 1))

    def forward(self, x: Tensor) -> Tensor:
        rows = [x[:, :, :1]]
        for row in torch.split(x, 1, 2):
            rows.append(self.conv(row + rows[-1]).tanh_())
        return torch.cat(rows[1:], 2)


class _Transform(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        spectrum: Tensor = torch.fft.rfft(x.float())
        return spectrum


@block
class Spectrum(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.transform = _Transform()

    def forward(self, x: Tensor) -> Tensor:
        spectrum: Tensor = self.transform(x)
        back: Tensor = torch.fft.irfft(spectrum * 0.5, n=x.shape[-1])
        return back.to(x.dtype)


class _OnlyHalf(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[:, ::2]


@block
class ViewOfAConv(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = _OnlyHalf(WIDTH, 2 * WIDTH, 1)
        self.same = nn.Identity()
        self.in_place = number % 2 == 0

    def forward(self, x: Tensor) -> Any:
        y = self.same(self.conv(x))
        return y.clamp_(min=0) if self.in_place else y


class _Answers(nn.Module):
    """Puts out what is no map: nothing, a number, whole numbers, no numbers at all."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number % 5

    def forward(self, x: Tensor) -> Any:
        answers = [None, 3, x.argmax(1), x[:0], (x > 0, "text", None)]
        return answers[self.number]


@block
class Answers(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.answers = _Answers(number)

    def forward(self, x: Tensor) -> Any:
        self.answers(x)
        return self.conv(x)


@block
class CountsInACell(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        calls = number

        def scaled(x: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return x / calls

        self.scaled: Callable[[Tensor], Tensor] = scaled

    def forward(self, x: Tensor) -> Any:
        return self.conv(self.scaled(x))


@block
class HiddenLayers(nn.Module):
    """Layers in a plain list, which the network does not know of."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.known = nn.Conv2d(WIDTH, WIDTH, 1)
        norm = nn.BatchNorm2d(WIDTH, eps=0.1 * (1 + number % 2))
        self.hidden = [self.known, norm.eval()]
        self.counter: list[nn.Module] = []
        if number % 3 == 2:
            self.hidden, self.counter = self.hidden[:1], [_Counting()]

    def forward(self, x: Tensor) -> Any:
        for layer in self.hidden:
            x = layer(x.to(next(layer.parameters()).dtype))
        for counter in self.counter:
            x = counter(x)
        return x.to(self.known.weight.dtype)


@block
class Noise(nn.Module):
    """Random on purpose: only the seal's word on it is asked for."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x + torch.rand_like(x))
