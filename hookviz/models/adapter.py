"""Call a network of several inputs with the image alone, the others as an example gave them."""

import secrets
from collections.abc import Callable, Mapping
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
        image: the tensor in them whose place every later image takes.
        key: tells this example from others in a cache.
    """

    arguments: Example
    image: Tensor
    key: str = field(default_factory=partial(secrets.token_hex, 8))

    def call(self, forward: Callable[..., Any], images: Tensor) -> Any:
        """Call a network's forward with images in the place of the example's."""
        filled = self._filled(self.arguments, images)
        return forward(**filled) if isinstance(filled, Mapping) else forward(*filled)

    def _filled(self, part: Any, images: Tensor) -> Any:
        if part is self.image:
            return images
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

    Or else of ``(1, C, D, H, W)``, or else of ``(1, C, L)``.

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
    return ExampleInput(example, _image([tensor for _, tensor in hooks.tensors_in(example)]))


def _image(tensors: list[Tensor]) -> Tensor:
    for dimensions in _DIMENSIONS:
        for tensor in tensors:
            if tensor.ndim == dimensions and tensor.is_floating_point():
                if len(tensor) == 1:
                    return tensor
                raise ModelError(
                    say(
                        "The example's image is {shape}, {count} images; give an example of "
                        "one, (1, C, H, W).",
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
