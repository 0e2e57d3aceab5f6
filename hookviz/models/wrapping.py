"""A person's own module → a frozen `Model` in eval mode, with the steps to its likeliest input."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking import replicas
from hookviz.models.digest import network_digest
from hookviz.types import Model, Preprocess

_SIDES = (224, 28, 32, 48, 64, 96, 128, 160, 192, 256, 299, 384, 512)  # likeliest inputs first


def wrap(
    module: nn.Module | Model,
    preprocess: Preprocess | Callable[[Image.Image], Tensor] | None = None,
    categories: Sequence[str] = (),
    *,
    name: str | None = None,
) -> Model:
    """A person's own network as a `Model`, as it is now.

    It is a copy: training the module further changes nothing here, and nothing here changes it.
    Hooks that you have put on the module stay on it and off the copy.

    Args:
        module: any module that takes one ``(1, C, H, W)`` float tensor. A `Model` is given back
            as it is, with what else is given here put in.
        preprocess: the steps to its input, or a function from an RGB Pillow image to a
            ``(C, H, W)`` tensor. By default as many channels as the first conv layer takes: 3 with
            ImageNet's mean and deviation, 1 as grey from -1 to 1, and any other number from
            tensors alone; at 224 pixels, or at another usual size where the network takes no 224.
        categories: a label per class.
        name: what to call it; the class's name by default.

    Raises:
        ModelError: `module` is no module, or can't be copied.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=64, crop=64), name="two layers")
    >>> hookviz.capture(model, "assets/samples/cat.jpg")["0"].values.shape  # (C, H, W)
    torch.Size([8, 62, 62])
    """
    if isinstance(module, Model):
        arguments: dict[str, Any] = {"preprocess": preprocess, "categories": tuple(categories)}
        arguments |= {"name": name, "title": name}
        changes = {key: value for key, value in arguments.items() if value}
        return replace(module, **changes) if changes else module
    if not isinstance(module, nn.Module):
        raise ModelError(f"wrap takes a torch.nn.Module, not {type(module).__name__}.")
    try:
        network = replicas.full_copy(module)
    except Exception as error:
        raise ModelError(f"{type(module).__name__} can't be copied: {error}") from error
    network.eval().requires_grad_(False)
    return Model(
        name=name or type(module).__name__,
        title=name or type(module).__name__,
        network=network,
        digest=network_digest(network),
        weights="own",
        categories=tuple(categories),
        preprocess=preprocess or _usual_preprocess(network),
    )


def _usual_preprocess(network: nn.Module) -> Preprocess:
    """What a network most likely takes, by its first conv layer and by which sizes run at all."""
    convs = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    first = next((part for part in network.modules() if isinstance(part, convs)), None)
    channels = first.in_channels if first is not None and first.in_channels > 0 else 3
    usual = Preprocess(resize=256, crop=224)
    if channels == 1:
        usual = replace(usual, mean=(0.5,), std=(0.5,))
    elif channels != 3:  # no image has these; `prepare` says so and asks for a tensor
        usual = replace(usual, mean=(0.0,) * channels, std=(1.0,) * channels)
    shapes_alone = replicas.shapes_only(network)
    for side in _SIDES:
        try:
            with torch.no_grad():
                shapes_alone(torch.empty(1, channels, side, side, device="meta"))
        except Exception:  # noqa: BLE001, S112 - a person's own code can raise anything
            continue
        return usual if side == usual.crop else replace(usual, resize=side, crop=side)
    return usual
