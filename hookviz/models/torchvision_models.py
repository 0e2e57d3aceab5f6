"""torchvision's networks: what its builders and its weights say of a model by its name."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn
from torchvision import models

from hookviz.types import Preprocess


def categories(name: str) -> tuple[str, ...]:
    """The labels of the data that the model's own weights were trained on."""
    return tuple(models.get_model_weights(name).DEFAULT.meta["categories"])


def min_size(name: str) -> int:
    """The smallest height and width in pixels that the model takes."""
    return int(max(models.get_model_weights(name).DEFAULT.meta["min_size"]))


def preprocess(name: str) -> Preprocess:
    """The steps from image to input that come with the model's own weights."""
    steps = models.get_model_weights(name).DEFAULT.transforms()
    return Preprocess(
        resize=steps.resize_size[0],
        crop=steps.crop_size[0],
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        interpolation=steps.interpolation.value,
        antialias=bool(steps.antialias),
    )


def has_training_heads(name: str) -> bool:
    """Whether the model has heads that only training uses: GoogLeNet and Inception."""
    network_class = inspect.signature(models.get_model_builder(name)).return_annotation
    return "aux_logits" in inspect.signature(network_class).parameters


def build(name: str, classes: int, *, training_heads: bool) -> nn.Module:
    """An untrained network, with its auxiliary heads for training where these are asked for."""
    options: dict[str, Any] = {"num_classes": classes}
    if has_training_heads(name):
        # GoogLeNet and Inception: their weights come with extra heads and with inputs in another
        # range, and they warn unless told whether they are to be initialised.
        options |= {"aux_logits": training_heads, "transform_input": True, "init_weights": True}
    builder: Callable[..., nn.Module] = models.get_model_builder(name)
    return builder(**options)
