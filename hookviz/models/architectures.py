"""Build the architecture of a catalog name, without or with its heads for training."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.hooking.torch_functions import EveryFunction
from hookviz.models.catalog import source_of
from hookviz.types import Preprocess

_seeding = threading.RLock()  # torch has one generator; one builder at a time may seed it


def is_borrowed(name: str) -> bool:
    """Return whether a model's architecture is in the catalog under a name of its own as well."""
    return source_of(name).same_architecture(name) != name


def spec_classes(name: str) -> int:
    """Return the number of classes of a catalog model's own weights."""
    return source_of(name).classes(name)


def classes_of(name: str, network: nn.Module) -> int:
    """Return the number of classes of a catalog model as it was built; 0 for a backbone."""
    head = class_keys(name)
    return classes_in(name, head[0], len(network.state_dict()[head[0]])) if head else 0


def classes_in(name: str, key: str, rows: int) -> int:
    """Return how many classes a last layer with that number of rows tells apart; 0 if none has it.

    Some detectors have a row for each class at each of their anchors.

    Args:
        name: the model's in the catalog.
        key: of the layer's weight or bias, one of `class_keys`.
        rows: of that tensor.
    """
    classes = spec_classes(name)
    own, next_one = (len(outline(name, count)[key]) for count in (classes, classes + 1))
    more, rest = divmod(rows - own, max(1, next_one - own))
    return 0 if rest else max(0, classes + more)


def has_training_heads(name: str) -> bool:
    """Return whether a catalog model has heads that only training uses: GoogLeNet, Inception."""
    return source_of(name).has_training_heads(name)


def categories(name: str) -> tuple[str, ...]:
    """Return the labels of the data that a catalog model's own weights were trained on."""
    return source_of(name).categories(name)


def preprocess(name: str) -> Preprocess | Callable[[Image.Image], Tensor]:
    """Return the steps from image to input that come with a catalog model's weights."""
    return source_of(name).preprocess(name)


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """Draw the same random numbers in every such block; the global generator is not touched."""
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def build(name: str, classes: int, *, training_heads: bool) -> nn.Module:
    """Build an untrained network, with its auxiliary heads for training where asked for."""
    source = source_of(name)
    with_heads = source.build_with_training_heads if training_heads else None
    return (with_heads or source.build)(name, classes)


def build_without_memory(name: str, classes: int, *, training_heads: bool = False) -> nn.Module:
    """Build a network whose weights have shapes and no values; see `build`.

    It takes neither memory nor random numbers, which a large network takes seconds to draw; but
    for one that runs a part of itself while it is built, as torchvision's SSDlite does.
    """
    with same_random_numbers():
        try:
            with _WithoutMemory():
                return build(name, classes, training_heads=training_heads)
        except RuntimeError:
            return build(name, classes, training_heads=training_heads).to("meta")


def drop_training_heads(network: nn.Module) -> None:
    """Remove the heads that only training uses, as torchvision does: no pass in eval runs them."""
    flag = getattr(network, "aux_logits", False) is True
    if flag or getattr(network, "aux_classifier", None) is not None:
        if flag:
            network.aux_logits = False  # type: ignore[assignment]
        for child, _ in list(network.named_children()):
            if child.casefold().startswith("aux"):
                setattr(network, child, None)


@lru_cache(maxsize=256)
def outline(name: str, classes: int, *, training_heads: bool = False) -> Mapping[str, Tensor]:
    """Return the state dict of an architecture without values, which takes no memory."""
    network = build_without_memory(name, classes, training_heads=training_heads)
    return MappingProxyType({key: own.to("meta") for key, own in network.state_dict().items()})


def class_keys(name: str) -> tuple[str, ...]:
    """Return the keys whose shapes depend on the class count, weights before biases."""
    classes = spec_classes(name)
    more = outline(name, classes + 1)
    return tuple(key for key, own in outline(name, classes).items() if own.shape != more[key].shape)


class _WithoutMemory(EveryFunction):
    """Context in which layers are made without memory for their weights.

    Layers allocate by `torch.empty`. The whole of torch can't be put on the meta device, since
    RegNet computes its widths with tensors. What begins such weights at random numbers is left
    out: torch's compiler, which it would load for shapes alone, takes a second to import.
    """

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, on the meta device where it allocates, and not at all where it fills."""
        options = dict(kwargs)
        if getattr(func, "__module__", "") == nn.init.__name__:
            filled = options.get("tensor", args[0] if args else None)
            if isinstance(filled, Tensor) and filled.is_meta:
                return filled
        if func is torch.empty:
            options["device"] = "meta"
        return func(*args, **options)
