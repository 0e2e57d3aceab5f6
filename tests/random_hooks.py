"""Blocks that put hooks on their own layers and cannot do without them."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tests.random_blocks import block
from tests.random_operations import WIDTH


@block
class ReadsItsHook(nn.Module):
    """Goes on with what a hook has kept, as backbones made of hooks do."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.kept: dict[str, Tensor] = {}
        self.takes = number % 2 == 0

        def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            self.kept["conv"] = output

        self.conv.register_forward_hook(keep)

    def forward(self, x: Tensor) -> Tensor:
        self.conv(x)
        return x + (self.kept.pop("conv") if self.takes else self.kept["conv"])


@block
class ReadsAClosure(nn.Module):
    """The hook's list is in closures alone."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        kept: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            kept[:] = [output]

        self.conv.register_forward_hook(keep)
        self.last: Callable[[], Tensor] = lambda: kept[-1]

    def forward(self, x: Tensor) -> Tensor:
        self.conv(x)
        return x * 0.5 + self.last()


@block
class ScalesByAHook(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        factor = 2 + number % 3
        self.conv.register_forward_hook(lambda _module, _inputs, output: output * factor)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)


@block
class ShiftsByAPreHook(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.shift = nn.Parameter(torch.full((), 0.5))

        def shifted(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (inputs[0] + self.shift, *inputs[1:])

        self.conv.register_forward_pre_hook(shifted)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)


@block
class HooksByMethods(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.seen: list[Tensor] = []
        self.conv.register_forward_hook(partial(self.keep, 0.5 + number % 2), with_kwargs=True)

    def keep(self, factor: float, _module: nn.Module, *seen: Any) -> Tensor:
        self.seen = [seen[-1] * factor]
        return self.seen[0]

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(input=x) + self.seen[-1].mean()  # type: ignore[no-any-return]


class _EqualisedRate:
    """Scales a layer's weights anew before each pass, as in StyleGAN."""

    def __init__(self, layer: nn.Module) -> None:
        weight = layer._parameters.pop("weight")
        assert weight is not None
        layer.register_parameter("weight_orig", nn.Parameter(weight.data * 2))
        layer.register_forward_pre_hook(self)

    def __call__(self, layer: nn.Module, _inputs: Any) -> None:
        weight = layer.get_parameter("weight_orig")
        layer.weight = weight * math.sqrt(2 / weight[0].numel())


@block
class EqualisedRates(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        _EqualisedRate(self.conv)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x)
