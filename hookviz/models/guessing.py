"""Guess a network's input by which inputs run through it, without data if possible.

A pass over shapes alone takes milliseconds. Where the network looks at values (``.item()``, an
``assert``) it can't be made, and of a person's own code it is not (see
`hookviz.hooking.purity.is_known_code`): a few inputs of zeros run through a copy then.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import inf
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from hookviz.hooking import hooks, replicas
from hookviz.hooking.isolation import isolated
from hookviz.hooking.precision import device_and_dtype, dtypes
from hookviz.hooking.purity import is_known_code
from hookviz.types import Preprocess

_SIDES = (224, 28, 32, 48, 64, 96, 128, 160, 192, 256, 299, 384, 512)  # likeliest inputs first
_SIDES_WITH_DATA = (224, 28, 32, 64, 96, 128)
_LONGEST = 20.0  # seconds after which inputs with data are no longer tried
_LENGTHS = (16_000, 1024, 128, 256, 512, 2048, 4096, 8000, 22_050, 44_100, 48_000)  # of sound
_VOLUMES = ((16, 112, 112), (32, 32, 32), (64, 64, 64), (8, 64, 64), (16, 224, 224), (16, 16, 16))
_MOST_CHANNELS = 6  # different counts that are tried
_LARGEST = 512  # side up to which one is searched that is not usual


@dataclass(frozen=True, slots=True)
class Guess:
    """Likeliest input of a network.

    Attributes:
        preprocess: the steps from an image to it.
        shape: ``(C, L)`` or ``(C, D, H, W)`` where the network takes no image, ``(C, H, W)`` where
            that is no square; else empty.
        runs: whether it ran through the network.
        dtype: in which precision it did; None where nothing did.
    """

    preprocess: Preprocess
    shape: tuple[int, ...] = ()
    runs: bool = False
    dtype: torch.dtype | None = None


def guess_input(network: nn.Module) -> Guess:
    """Find the first of the usual inputs that runs through the network and keeps a batch of 1.

    Channels are those of the conv layer that runs first, or of another one where those do not go
    through. A network that puts out more than one row for one image, as ``x.view(-1, 128)`` does
    at a wrong size, takes that size only where no other runs.
    """
    device, dtype = device_and_dtype(network)
    with isolated(network):
        for probe, sides in _probes(network, device, dtype):
            shape = probe.first_fit(sides) or probe.searched()
            if shape is not None:
                return replace(guess_of(shape), runs=True, dtype=probe.dtype)
    return Guess(_steps(probe.channels()[0], 224))


def _probes(
    network: nn.Module, device: torch.device, first: torch.dtype
) -> Iterator[tuple["_Probe", tuple[int, ...]]]:
    sides: tuple[int, ...] = _SIDES
    if is_known_code(network):
        yield _Probe(replicas.meta_copy(network), torch.device("meta"), first), _SIDES
        sides = _SIDES_WITH_DATA
    # Of a network of several precisions nobody knows which one its input has: the finest that runs.
    for dtype in dtypes(network):
        yield _Probe(replicas.full_copy(network), device, dtype), sides


def guess_of(shape: tuple[int, ...]) -> Guess:
    """Return the guess for a network that takes ``(C, …)`` inputs of this shape."""
    square = len(shape) == 3 and shape[1] == shape[2]
    side = min(shape[1:]) if len(shape) == 3 else 224
    return Guess(_steps(shape[0], side), () if square else shape)


def _steps(channels: int, side: int) -> Preprocess:
    steps = Preprocess(resize=256 if side == 224 else side, crop=side)
    if channels == 1:
        return replace(steps, mean=(0.5,), std=(0.5,))
    if channels == 3:
        return steps
    # no image has these; `prepare` says so and asks for a tensor
    return replace(steps, mean=(0.0,) * channels, std=(1.0,) * channels)


class _Probe:
    """Copy of a network, through which inputs are tried."""

    def __init__(self, network: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        self._network = network
        self.dtype = dtype
        self._options: dict[str, Any] = {"device": device, "dtype": dtype}
        self._until = time.monotonic() + (_LONGEST if device.type != "meta" else inf)
        self._convs = {
            name: part for name, part in network.named_modules() if isinstance(part, _ConvNd)
        }
        self._linears = {
            name: part for name, part in network.named_modules() if isinstance(part, nn.Linear)
        }
        self._first = self._first_conv()

    def channels(self) -> tuple[int, ...]:
        """List counts of input channels, likeliest first."""
        convs = [*([self._first] if self._first is not None else []), *self._convs.values()]
        counts = [conv.in_channels for conv in convs if conv.in_channels > 0]
        # the first conv may take in something else than the image, such as several frames of it
        usual = (*counts[:1], 3, 1, *counts[1:])
        return tuple(islice(dict.fromkeys(usual), _MOST_CHANNELS))

    def first_fit(self, sides: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the first shape that runs and keeps a batch of 1, else the first that runs."""
        second_best: tuple[int, ...] | None = None
        for count in self.channels():
            for extent in self._extents(sides):
                output = self._output((count, *extent))
                if output is None:
                    continue
                if all(len(part) == 1 for _, part in hooks.tensors_in(output) if part.ndim):
                    return (count, *extent)
                second_best = second_best or (count, *extent)
        return second_best

    def searched(self) -> tuple[int, ...] | None:
        """Return the shape, of sides of any length, at which a linear layer gets what it takes.

        Of several sides the one that is most often even, as pooling drops what is odd.
        """
        if isinstance(self._first, nn.Conv1d | nn.Conv3d):
            return None
        for count in self.channels():
            surplus = self._surplus(count, 224)
            if surplus == -inf:
                continue
            sides = range(1, 224) if surplus > 0 else range(225, _LARGEST + 1)
            least = sides.start + bisect_left(sides, 0.0, key=partial(self._surplus, count))
            for step in (32, 16, 8, 4, 2, 1):
                side = -(-least // step) * step
                if self._output((count, side, side)) is not None:
                    return count, side, side
        return None

    def _surplus(self, count: int, side: int) -> float:
        """Return how many numbers too many the first linear layer gets that flat maps don't fit.

        Below 0 they are too few: -∞ where it is something else that fails, as a kernel does that
        is larger than its maps. 0 where all goes through.
        """
        wrong: list[int] = []

        def see(call: hooks.Call) -> None:
            numbers = next((part for _, part in hooks.tensors_in(call.inputs)), None)
            taken = self._linears[call.layer].in_features
            if numbers is not None and numbers.ndim == 2 and numbers.shape[1] != taken:
                wrong.append(numbers.shape[1] - taken)
                raise hooks.StopForward

        with hooks.before(self._network, self._linears, see):
            output = self._output((count, side, side))
        return wrong[0] if wrong else 0 if output is not None else -inf

    def _extents(self, sides: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """List inputs' sizes without batch and channels, likeliest first."""
        if isinstance(self._first, nn.Conv1d):
            return tuple((length,) for length in _LENGTHS)
        if isinstance(self._first, nn.Conv3d):
            return _VOLUMES
        if getattr(self._first, "in_channels", 1) == 3:  # colours are seldom of digits' 28 pixels
            sides = tuple(sorted(sides, key=lambda side: (side != 224, side == 28)))
        return tuple((side, side) for side in sides)

    def _first_conv(self) -> _ConvNd | None:
        """Find the conv layer that a pass of an image reaches first, or one of sound or a volume.

        None where none does. A conv that takes the batch for its channels, as it may where a
        dimension is missing, has not been reached.
        """
        reached: list[_ConvNd] = []

        def see(call: hooks.Call) -> None:
            conv = self._convs[call.layer]
            dims = [part.ndim for _, part in hooks.tensors_in(call.inputs)]
            if dims[:1] == [2 + len(conv.kernel_size)]:
                reached.append(conv)
            raise hooks.StopForward

        counts = dict.fromkeys((3, 1, *(conv.in_channels for conv in self._convs.values())))
        with hooks.before(self._network, filter(None, self._convs), see):
            for extent in ((224, 224), (16, 32, 32), (1024,)):
                for count in islice(counts, _MOST_CHANNELS):
                    self._output((count, *extent))
                    if reached:
                        return reached[0]
        return None

    def _output(self, shape: tuple[int, ...]) -> Any:
        """Run a pass over zeros of ``shape``, and return its output; None where it fails."""
        if time.monotonic() > self._until:
            return None
        try:
            with torch.inference_mode(mode=False), torch.no_grad():
                return self._network(torch.zeros(1, *shape, **self._options))
        except hooks.StopForward:
            return None
        except Exception:  # noqa: BLE001 - a person's own code can raise anything
            return None
