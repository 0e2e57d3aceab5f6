"""Make a network of several inputs take the image alone; the others stay as an example gave them.

The network's class gets a subclass whose ``forward`` takes the image alone, so that layers keep
their names. What else the network takes travels with it as buffers, to its device and its copies.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx, nn

from hookviz.errors import ModelError, shorten
from hookviz.hooking import hooks, replicas
from hookviz.hooking.precision import device_and_dtype
from hookviz.language.saying import joined, say
from hookviz.wording import times

Example: TypeAlias = tuple[Any, ...] | list[Any] | Mapping[str, Any]
"""Positional arguments of a network's ``forward``, or those that are given by name."""

_DIMENSIONS = (4, 5, 3)  # of an image, a volume or sound with the batch; likeliest first


def adapt(network: nn.Module, example: Example) -> tuple[int, ...]:
    """Make `network`, a private copy, take one tensor; return its shape without the batch.

    The tensor takes the place of the example's image: its first float tensor of ``(1, C, H, W)``,
    or else of ``(1, C, D, H, W)``, or else of ``(1, C, L)``.

    Raises:
        ModelError: the example has no such tensor, or the network can't take the example.
    """
    if not isinstance(example, tuple | list | Mapping):
        raise ModelError(
            say(
                "example={name} is neither a tuple of positional arguments nor a dict of "
                "arguments by name; for one tensor write example=(tensor,).",
                name=shorten(repr(type(example).__name__)),
            )
        )
    if "forward" in vars(network):
        raise ModelError(
            say(
                "{name} has a forward of its own in place of its class's; define it in the "
                "class for an example.",
                name=type(network).__name__,
            )
        )
    tensors = [tensor for _, tensor in hooks.tensors_in(example)]
    image = _image(tensors)
    kind = type(network)
    others = {id(tensor): tensor for tensor in tensors if tensor is not image}
    for number, tensor in enumerate(others.values()):
        network.register_buffer(f"_example_{number}", tensor.detach().clone(), persistent=False)
    names = {key: _Slot(f"_example_{number}") for number, key in enumerate(others)}
    arguments = _with_slots(example, names | {id(image): _IMAGE})
    network._arguments = arguments
    if isinstance(network, fx.GraphModule):  # whose class makes itself anew for every copy
        network.forward = partial(_as_in_the_example, network)
    else:
        network.__class__ = type(kind.__name__, (_OneInput, kind), {"__module__": __name__})
    _try(network, image)
    return tuple(image.shape[1:])


class _Slot(str):
    """Placeholder of a tensor: the name of the buffer that holds it; empty for the image."""

    __slots__ = ()


_IMAGE = _Slot()


class _OneInput(nn.Module):
    """Network whose forward takes the image alone; the other arguments are those of the example."""

    def forward(self, images: Tensor) -> Any:
        """Run the network on images, ``(1, C, …)``, and on the example's other arguments."""
        return _called(super().forward, _filled(self, self._arguments, images))


def _as_in_the_example(network: nn.Module, images: Tensor) -> Any:
    forward = partial(type(network).forward, network)
    return _called(forward, _filled(network, network._arguments, images))


def _called(forward: Callable[..., Any], arguments: Any) -> Any:
    return forward(**arguments) if isinstance(arguments, Mapping) else forward(*arguments)


def _filled(network: nn.Module, part: Any, images: Tensor) -> Any:
    if isinstance(part, _Slot):
        return getattr(network, part) if part else images
    return _rebuilt(part, lambda inner: _filled(network, inner, images))


def _with_slots(part: Any, slots: Mapping[int, _Slot]) -> Any:
    if isinstance(part, Tensor):
        return slots[id(part)]
    return _rebuilt(part, lambda inner: _with_slots(inner, slots))


def _rebuilt(part: Any, each: Callable[[Any], Any]) -> Any:
    """Apply `each` to the parts of a tuple, list or dict; return anything else as it is."""
    if isinstance(part, Mapping):
        return {key: each(value) for key, value in part.items()}
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*map(each, part))
    if isinstance(part, tuple | list):
        return type(part)(map(each, part))
    return part


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


def _try(network: nn.Module, image: Tensor) -> None:
    """Run the example once, on a copy that is thrown away."""
    try:
        with torch.inference_mode(mode=False), torch.no_grad():
            replicas.full_copy(network)(image.to(*device_and_dtype(network), copy=True))
    except Exception as error:
        why = shorten(str(error).partition("\n")[0], 200) or type(error).__name__
        raise ModelError(
            say("{name} can't take the example: {reason}", name=type(network).__name__, reason=why)
        ) from error
