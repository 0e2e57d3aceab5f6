"""Guess the input shape of a network.

1. Read it from the network: timm's and Hugging Face's state it, convolutions state channels.
2. Where a pass of that shape fails, try the usual shapes on zeros.
3. Else search the side at which the first linear layer gets as many numbers as it takes.
"""

import math
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import inf
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from hookviz.hooking import hooks
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import private_replica
from hookviz.types import Model, Preprocess

_SIDES = (224, 28, 32, 64, 96, 128, 48, 160, 192, 256, 299, 384, 512)  # likeliest inputs first
_LONGEST_S = 20.0  # after which no more inputs are tried
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
    """

    preprocess: Preprocess
    shape: tuple[int, ...] = ()

    def input_shape(self, preprocess: object) -> tuple[int, ...]:
        """Return `Model.input_shape` of a model with this preprocessing.

        A function states no size: it stands there unless it is that of most networks.
        """
        if isinstance(preprocess, Preprocess) or self.preprocess.shape == (3, 224, 224):
            return self.shape
        return self.shape or self.preprocess.shape


def stated_input(network: nn.Module) -> Guess:
    """Return the input that a network states, without running it.

    Of timm's ``pretrained_cfg`` all steps; of Hugging Face's ``config`` channels and size; else the
    channels of the first convolution, and 224 pixels.
    """
    own = getattr(network, "pretrained_cfg", None)
    if isinstance(own, dict) and {"input_size", "mean", "std"} <= own.keys():
        channels, height, width = own["input_size"]
        if len(own["mean"]) == channels and height == width:
            mode = own.get("interpolation", "bilinear")
            return Guess(
                Preprocess(
                    resize=math.floor(height / own.get("crop_pct", 1.0)),
                    crop=height,
                    mean=tuple(own["mean"]),
                    std=tuple(own["std"]),
                    interpolation=mode if mode in ("bilinear", "bicubic") else "bilinear",
                )
            )
    config = getattr(network, "config", None)
    config = getattr(config, "vision_config", config)
    side = getattr(config, "image_size", None)
    if isinstance(side, int | list | tuple):
        height, width = side if isinstance(side, list | tuple) else (side, side)
        return guess_of((int(getattr(config, "num_channels", 3)), height, width))
    if normalises_itself(network):
        return guess_of((3, 224, 224), as_values=True)
    if is_of(network, "ultralytics"):
        side = 224 if type(network).__name__ == "ClassificationModel" else 640
        return guess_of((3, side, side), as_values=True)
    first = next((part for part in network.modules() if isinstance(part, _ConvNd)), None)
    if first is None or first.in_channels <= 0:
        return Guess(_steps(3, 224))
    extents: dict[int, tuple[int, ...]] = {1: _LENGTHS[:1], 2: (224, 224), 3: _VOLUMES[0]}
    return guess_of((first.in_channels, *extents[len(first.kernel_size)]))


def stated_labels(network: nn.Module) -> tuple[str, ...]:
    """Return the label of each class that a network with a head has itself.

    In Hugging Face's ``config``, or ultralytics' ``names``. None where they are placeholders,
    ``LABEL_0`` or ``0`` and so on.
    """
    if is_of(network, "ultralytics"):
        labels, has_head = getattr(network, "names", None), True
    else:
        labels = getattr(getattr(network, "config", None), "id2label", None)
        has_head = getattr(network, "base_model", network) is not network
    if not isinstance(labels, dict) or not has_head or set(labels) != set(range(len(labels))):
        return ()
    named = tuple(str(labels[index]) for index in range(len(labels)))
    return () if named[:1] in (("LABEL_0",), ("0",)) else named


def is_of(network: nn.Module, package: str) -> bool:
    """Return whether a network's class, or one that it is derived from, is of a package."""
    return any(f"{base.__module__}.".startswith(f"{package}.") for base in type(network).__mro__)


def search_input(model: Model) -> Guess | None:
    """Find the first of the usual inputs that runs through the network and keeps a batch of 1.

    Channels are those of the conv layer that runs first, or of another one where those do not go
    through. A network that puts out more than one row for one image, as ``x.view(-1, 128)`` does
    at a wrong size, takes that size only where no other runs. None where nothing runs.
    """
    with private_replica(model) as network:
        probe = _Probe(network)
        shape = probe.first_fit(_SIDES) or probe.searched()
    return None if shape is None else guess_of(shape)


def normalises_itself(network: nn.Module) -> bool:
    """Return whether a network resizes and normalises its images, as torchvision's detectors do."""
    return any(type(part).__name__ == "GeneralizedRCNNTransform" for part in network.modules())


def guess_of(shape: tuple[int, ...], *, as_values: bool = False) -> Guess:
    """Return the guess for a network that takes ``(C, …)`` inputs of this shape.

    With `as_values` it takes the values of the image, 0…1, as they are.
    """
    square = len(shape) == 3 and shape[1] == shape[2]
    side = min(shape[1:]) if len(shape) == 3 else 224
    steps = _steps(shape[0], side)
    if as_values:
        steps = replace(steps, mean=(0.0,) * shape[0], std=(1.0,) * shape[0])
    return Guess(steps, () if square else shape)


def _steps(channels: int, side: int) -> Preprocess:
    steps = Preprocess(resize=256 if side == 224 else side, crop=side)
    if channels == 1:
        return replace(steps, mean=(0.5,), std=(0.5,))
    if channels == 3:
        return steps
    # no image has these; `prepare_input` says so and asks for a tensor
    return replace(steps, mean=(0.0,) * channels, std=(1.0,) * channels)


class _Probe:
    """Network through which inputs are tried."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        device, dtype = device_and_dtype(network)
        self._options: dict[str, Any] = {"device": device, "dtype": dtype}
        self._until = time.monotonic() + _LONGEST_S
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
        """Return the shape, of any side, at which the first linear layer fits.

        Of several sides the one with the most factors 2, as pooling drops odd rows.
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
            expected = self._linears[call.layer].in_features
            if numbers is not None and numbers.ndim == 2 and numbers.shape[1] != expected:
                wrong.append(numbers.shape[1] - expected)
                raise hooks.StopForward

        with hooks.before(self._network, self._linears, see):
            output = self._output((count, side, side))
        if wrong:
            return wrong[0]
        return -inf if output is None else 0

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
            return self._network(torch.zeros(1, *shape, **self._options))
        except hooks.StopForward:
            return None
        except Exception:  # noqa: BLE001 - a person's own code can raise anything
            return None
