"""Call a network of several inputs with the image alone, the others as an example gave them."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor

from hookviz.errors import ModelError, shorten
from hookviz.hooking import hooks
from hookviz.language.saying import joined, say
from hookviz.wording import times

Example: TypeAlias = tuple[Any, ...] | list[Any] | Mapping[str, Any]
"""Positional arguments of a network's ``forward``, or those that are given by name."""

_DIMENSIONS = (4, 5, 3)  # of an image, a volume or sound with the batch; likeliest first


@dataclass(frozen=True, eq=False)
class ExampleInput:
    """Arguments of a network, one of which is the image.

    Attributes:
        arguments: as the example has them.
        image: the tensor in them whose place every later image takes, with its batch.
        place: that tensor; or the list around it, for a network that takes a list of images.
        key: tells this example from others in a cache.
    """

    arguments: Example
    image: Tensor
    place: Tensor | Sequence[Tensor]
    key: str = field(default_factory=partial(secrets.token_hex, 8))

    def call(self, forward: Callable[..., Any], images: Tensor) -> Any:
        """Call a network's forward with images in the place of the example's."""
        filled = self._filled(self.arguments, images)
        return forward(**filled) if isinstance(filled, Mapping) else forward(*filled)

    def _filled(self, part: Any, images: Tensor) -> Any:
        if part is self.place:
            return images if isinstance(part, Tensor) else [*images]
        if isinstance(part, Tensor):
            return part.to(images.device, copy=True)
        if isinstance(part, Mapping):
            return {key: self._filled(value, images) for key, value in part.items()}
        if isinstance(part, tuple | list):
            several = [self._filled(value, images) for value in part]
            return type(part)(*several) if hasattr(part, "_fields") else type(part)(several)
        return part


def example_input(example: Example) -> ExampleInput:
    """Find an example's image: its first float tensor of ``(1, C, H, W)``.

    Or else of ``(1, C, D, H, W)``, or else a list of one ``(C, H, W)``, or else of ``(1, C, L)``.

    Raises:
        ModelError: the example has no such tensor.
    """
    if not isinstance(example, tuple | list | Mapping):
        raise ModelError(
            say(
                "example={name} is neither a tuple of positional arguments nor a dict of "
                "arguments by name; for one tensor write example=(tensor,).",
                name=shorten(repr(type(example).__name__)),
            )
        )
    tensors = [tensor for _, tensor in hooks.tensors_in(example) if tensor.is_floating_point()]
    listed = None if any(tensor.ndim in {4, 5} for tensor in tensors) else _list_of_one(example)
    if listed is not None:
        return ExampleInput(example, listed[0][None], listed)
    image = _image([tensor for _, tensor in hooks.tensors_in(example)])
    return ExampleInput(example, image, image)


def _list_of_one(example: Example) -> Sequence[Tensor] | None:
    """Find a list of one ``(C, H, W)`` tensor, as torchvision's detectors take it."""
    parts: Iterable[Any] = example.values() if isinstance(example, Mapping) else example
    for part in parts:
        if isinstance(part, list | tuple) and len(part) == 1 and not hasattr(part, "_fields"):
            image = part[0]
            if isinstance(image, Tensor) and image.ndim == 3 and len(image) > 1:
                return part
    return None


def _image(tensors: list[Tensor]) -> Tensor:
    for dimensions in _DIMENSIONS:
        for tensor in tensors:
            if tensor.ndim == dimensions and tensor.is_floating_point():
                if len(tensor) == 1:
                    return tensor
                raise ModelError(
                    say(
                        "The example's image is {shape}, {count} images; give an example of "
                        "one, (1, C, H, W), or [tensor] of (C, H, W) where the network takes a "
                        "list.",
                        shape=times(tensor.shape),
                        count=len(tensor),
                    )
                )
    seen = joined(
        say("{shape} of {dtype}", shape=times(tensor.shape), dtype=tensor.dtype)
        for tensor in tensors
    )
    raise ModelError(
        say(
            "The example has no image in it ({contents}); one argument has to be a float "
            "tensor of (1, C, H, W), or of (1, C, D, H, W) or (1, C, L).",
            contents=seen or say("no tensor at all"),
        )
    )
