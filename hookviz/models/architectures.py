"""A catalog name → the network of that architecture, and what belongs to it by itself."""

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import models

from hookviz.hooking.torch_functions import EveryFunction
from hookviz.models import bundled, catalog, timm_models
from hookviz.types import Preprocess


def spec_classes(name: str) -> int:
    """How many classes a catalog model has by itself."""
    if name.startswith(timm_models.PREFIX):
        return timm_models.classes(name)
    return len(categories(name))


def classes_of(name: str, network: nn.Module) -> int:
    """How many classes a catalog model has as it was built."""
    head = class_keys(name)
    return len(network.state_dict()[head[0]]) if head else 0  # a backbone has no classes


def has_training_heads(name: str) -> bool:
    """Whether a catalog model has heads that only training uses: GoogLeNet and Inception."""
    if name == catalog.BUNDLED or name.startswith(timm_models.PREFIX):
        return False
    network_class = inspect.signature(models.get_model_builder(name)).return_annotation
    return "aux_logits" in inspect.signature(network_class).parameters


def categories(name: str) -> tuple[str, ...]:
    """The labels of the data that a catalog model's own weights were trained on."""
    if name.startswith(timm_models.PREFIX):
        return timm_models.categories(name)
    own = bundled.CATEGORIES if name == catalog.BUNDLED else None
    return own or tuple(models.get_model_weights(name).DEFAULT.meta["categories"])


def preprocess(name: str) -> Preprocess | Callable[[Image.Image], Tensor]:
    """The steps from image to input that come with a catalog model's weights."""
    if name == catalog.BUNDLED:
        return bundled.PREPROCESS
    if name.startswith(timm_models.PREFIX):
        return timm_models.preprocess(name)
    steps = models.get_model_weights(name).DEFAULT.transforms()
    return Preprocess(
        resize=steps.resize_size[0],
        crop=steps.crop_size[0],
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        interpolation=steps.interpolation.value,
        antialias=bool(steps.antialias),
    )


def build(name: str, classes: int, *, training_heads: bool) -> nn.Module:
    """An untrained network, with its auxiliary heads for training where these are asked for."""
    if name == catalog.BUNDLED:
        return bundled.ShapesNet(classes)
    if name.startswith(timm_models.PREFIX):
        return timm_models.build(name, classes)
    options: dict[str, Any] = {"num_classes": classes}
    if has_training_heads(name):
        # GoogLeNet and Inception: their weights come with extra heads and with inputs in another
        # range, and they warn unless told whether they are to be initialised.
        options |= {"aux_logits": training_heads, "transform_input": True, "init_weights": True}
    builder: Callable[..., nn.Module] = models.get_model_builder(name)
    return builder(**options)


def build_without_memory(name: str, classes: int, *, training_heads: bool = False) -> nn.Module:
    """A network whose weights have shapes and no values; see `build`.

    It takes neither memory nor random numbers, which a large network takes seconds to draw.
    """
    with _WithoutMemory():
        return build(name, classes, training_heads=training_heads)


def drop_training_heads(network: nn.Module) -> None:
    """Take out what only training uses, as torchvision does: no forward pass in eval runs it."""
    if getattr(network, "aux_logits", False) is True:
        network.aux_logits = False  # type: ignore[assignment]
        for child, _ in list(network.named_children()):
            if child.casefold().startswith("aux"):
                setattr(network, child, None)


@lru_cache(maxsize=256)
def outline(name: str, classes: int, *, training_heads: bool = False) -> Mapping[str, Tensor]:
    """The state dict of an architecture without values, which takes no memory."""
    network = build_without_memory(name, classes, training_heads=training_heads)
    return MappingProxyType({key: own.to("meta") for key, own in network.state_dict().items()})


def class_keys(name: str) -> tuple[str, ...]:
    """The keys whose shapes depend on the class count, weights before biases."""
    classes = spec_classes(name)
    more = outline(name, classes + 1)
    return tuple(key for key, own in outline(name, classes).items() if own.shape != more[key].shape)


class _WithoutMemory(EveryFunction):
    """While it is entered, layers are made without memory for their weights.

    Layers allocate by `torch.empty`. The whole of torch can't be put on the meta device, since
    RegNet computes its widths with tensors.
    """

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` returns, on the meta device where it allocates."""
        options = dict(kwargs)
        if func is torch.empty:
            options["device"] = "meta"
        return func(*args, **options)
