"""Blocks that keep something outside of the network, or know its layers by another way than names.

What they keep outside is shared by every network and every copy: `forget` empties it, and `apart`
puts something else in its place.
"""

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tests.random_blocks import block
from tests.random_operations import WIDTH

MASKS: dict[tuple[Any, ...], Tensor] = {}


def forget() -> None:
    """Empty all that blocks have kept outside of networks."""
    MASKS.clear()
    CachesOnItsClass.masks.clear()
    _kept["mask"] = functools.lru_cache(maxsize=16)(_mask_like)


@contextmanager
def apart() -> Iterator[None]:
    """Nothing is kept outside at the beginning of the block; at its end, what was before it."""
    dicts: list[dict[Any, Any]] = [MASKS, CachesOnItsClass.masks, _kept]
    before = [dict(kept) for kept in dicts]
    forget()
    try:
        yield
    finally:
        for kept, content in zip(dicts, before, strict=True):
            kept.clear()
            kept.update(content)


def _mask(x: Tensor) -> Tensor:
    rows, columns = x.shape[-2:]
    ramp = torch.linspace(-1, 1, rows * columns, dtype=x.dtype, device=x.device)
    return ramp.view(rows, columns)


@block
class CachesInItsFile(nn.Module):
    """A mask by shape in a dict of the module, as window attention and position codes have it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        key = (*x.shape[-2:], x.dtype)
        if key not in MASKS:
            MASKS[key] = _mask(x)
        return self.conv(x + MASKS[key])


@block
class CachesOnItsClass(nn.Module):
    masks: ClassVar[dict[tuple[Any, ...], Tensor]] = {}

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        mask = self.masks.get(key := (*x.shape[-2:], x.dtype))
        if mask is None:
            mask = type(self).masks[key] = _mask(x)
        return self.conv(x) + mask


class _Likeness:
    """Stands for a tensor in the key of a cache: two of one shape and type are equal."""

    def __init__(self, like: Tensor) -> None:
        self.like: Callable[[], Tensor] = lambda: like
        self._key = (*like.shape[-2:], like.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Likeness) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _mask_like(likeness: _Likeness) -> Tensor:
    return _mask(likeness.like())


_kept: dict[str, Callable[[_Likeness], Tensor]] = {}
forget()


@block
class CachesByLru(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        return self.conv(x) + _kept["mask"](_Likeness(x))


class _Child(nn.Module):
    def __init__(self, parent: nn.Module, number: int) -> None:
        super().__init__()
        # torch takes a plain attribute that stands for a module for a part
        self.parent: Callable[[], Any] = weakref.ref(parent)
        self.proxies = (weakref.proxy(parent),) * (number % 2)

    def forward(self, x: Tensor) -> Any:
        parent = self.proxies[0] if self.proxies else self.parent()
        return parent.conv(x) * parent.scale


@block
class CallsItsParent(nn.Module):
    """A part that runs the layers of the module that it is a part of."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 1)
        self.scale = nn.Parameter(torch.ones(()))
        self.child = _Child(self, number)

    def forward(self, x: Tensor) -> Any:
        return self.child(x)


@block
class LooksUpWeakly(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.by_name = weakref.WeakValueDictionary({"conv": self.conv})
        self.among = weakref.WeakSet([self.conv])
        self.of_one = number % 2 == 0

    def forward(self, x: Tensor) -> Any:
        return self.by_name["conv"](x) if self.of_one else next(iter(self.among))(x)


@block
class KeepsByLayer(nn.Module):
    """Numbers of layers, under the layers themselves."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.scales = weakref.WeakKeyDictionary({self.conv: 0.5 + number % 3})

    def forward(self, x: Tensor) -> Any:
        return self.conv(x) * self.scales[self.conv]


@block
class LooksUpOnce(nn.Module):
    """Finds its layer by a cached method, which is bound to the network that was built."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.find = functools.lru_cache(maxsize=None)(self.get_submodule)

    def forward(self, x: Tensor) -> Any:
        return self.find("conv")(x)
