"""Hold what layers put out for several images: together by layer, and image by image."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload

import torch
from torch import Tensor

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.types import (
    UNKNOWN,
    WINDOWS,
    Activation,
    ActivationKey,
    Capture,
    Layout,
    MissingAddressError,
)
from hookviz.wording import times


@dataclass(frozen=True, eq=False, slots=True)
class BatchActivation:
    """What one call of one layer put out for several images.

    Attributes:
        address: the layer, the call and the part of the output.
        raw: as the layer put it out, images first, ``(N, …)``.
        layout: how the part of one image lies.
    """

    address: ActivationKey
    raw: Tensor = field(repr=False)
    layout: Layout = UNKNOWN

    @property
    def values(self) -> Tensor:
        """The maps, ``(N, C, H, W)``; `raw` where rows and columns are not known."""
        raw = self.raw.flatten(0, 1) if self.layout.order == WINDOWS else self.raw
        return self.layout.batch_maps(raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, image: int) -> Activation:
        """Return the activation of one image, which shares the memory of all."""
        return Activation(self.address, self.raw[image], self.layout)

    def __iter__(self) -> Iterator[Activation]:
        return (self[image] for image in range(len(self)))


Parts = Mapping[ActivationKey, tuple[Layout, Tensor | tuple[Tensor, ...]]]
"""By address how one image's part lies, and the parts: rows of a tensor, or tensors."""


@dataclass(frozen=True, eq=False, slots=True)
class ImagesOfPass:
    """What one pass over several images recorded, taken apart by image.

    Attributes:
        captures: the `Capture` of each image, without its activations.
        activations: what the layers put out, in order of execution.
        layer_inputs: what they were given.
    """

    captures: tuple[Capture, ...]
    activations: Parts
    layer_inputs: Parts

    def capture(self, image: int) -> Capture:
        """Return the capture of one image, with memory of its own."""
        return replace(
            self.captures[image],
            activations=_of_image(self.activations, image),
            layer_inputs=_of_image(self.layer_inputs, image),
        )


def _of_image(parts: Parts, image: int) -> tuple[Activation, ...]:
    return tuple(
        Activation(address, own[image].clone(memory_format=torch.contiguous_format), layout)
        for address, (layout, own) in parts.items()
    )


class CaptureBatch(Sequence[Capture]):
    """Captures of several images, in their order.

    ``batch[2]`` is the `Capture` of the third image, with memory of its own; ``batch["conv1"]`` a
    `BatchActivation`, whose ``raw`` is what the layer put out for all, ``(N, …)``.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> batch = hookviz.capture(network, torch.rand(5, 3, 8, 8), "*")  # (N, C, H, W)
    >>> len(batch), batch.layers, batch["0"].raw.shape, batch[4]["0"].raw.shape
    (5, ('0', '1'), torch.Size([5, 4, 6, 6]), torch.Size([4, 6, 6]))
    """

    def __init__(self, passes: Sequence[ImagesOfPass]) -> None:
        self._passes = tuple(passes)
        self._places = [(own, place) for own in passes for place in range(len(own.captures))]

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"CaptureBatch({len(self)} images, layers={list(self.layers)})"

    @overload
    def __getitem__(self, index: int) -> Capture: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Capture, ...]: ...
    @overload
    def __getitem__(self, index: str) -> BatchActivation: ...
    def __getitem__(
        self, index: int | slice | str
    ) -> Capture | tuple[Capture, ...] | BatchActivation:
        """Return the capture of an image, those of several, or a layer's output for all.

        Raises:
            UnknownLayerError: nothing was recorded at that address.
            HookVizError: its parts differ in shape from image to image.
        """
        if isinstance(index, str):
            return self._of_all(index)
        if isinstance(index, slice):
            return tuple(own.capture(place) for own, place in self._places[index])
        own, place = self._places[index]
        return own.capture(place)

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Written addresses of what was recorded, in order of execution."""
        return tuple(map(str, self._passes[0].activations))

    @property
    def input(self) -> Tensor:
        """Inputs that the network saw, of one size: float32 on the CPU, ``(N, C, H, W)``."""
        return torch.cat([own.captures[place].input for own, place in self._places])

    @property
    def logits(self) -> Tensor | None:
        """Scores before any softmax, float32 on the CPU, ``(N, classes)``; None without scores."""
        rows = [own.captures[place].logits for own, place in self._places]
        known = [row for row in rows if row is not None]
        return torch.stack(known) if len(known) == len(rows) else None

    def _of_all(self, text: str) -> BatchActivation:
        known = {str(address): address for address in self._passes[0].activations}
        address = known.get(text, known.get(str(ActivationKey(text))))
        if address is None or not all(address in own.activations for own in self._passes):
            raise MissingAddressError(say("captured layer"), text, self.layers)
        each = [own.activations[address][1] for own in self._passes]
        shapes = {tuple(parts[0].shape) for parts in each}
        if len(shapes) > 1:
            raise HookVizError(
                say(
                    "{address} has {shapes} for images of different sizes, which make no one "
                    "tensor. batch[0][{name!r}] is that of one image.",
                    address=address,
                    shapes=" and ".join(map(times, sorted(shapes))),
                    name=text,
                )
            )
        stacks = [parts if isinstance(parts, Tensor) else torch.stack(parts) for parts in each]
        raw = stacks[0] if len(stacks) == 1 else torch.cat(stacks)
        return BatchActivation(address, raw, self._passes[0].activations[address][0])
