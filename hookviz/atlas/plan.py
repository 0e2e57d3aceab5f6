"""Plan what an atlas is made of and how, and divide the work into shards."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from hookviz.atlas.channel_table import ChannelTable
from hookviz.atlas.sources import Source
from hookviz.atlas.tally import TOP
from hookviz.capturing.features import steps
from hookviz.errors import SettingError, one_of, shorten
from hookviz.types import Model

DTYPES = {"float32": None, "bfloat16": torch.bfloat16}
"""Precisions that a pass can compute in, by name; None for the network's own."""

BATCH = 16
"""Default number of images in a forward pass."""

MAX_CLASSES = 1000
"""With more class folders than this, no numbers by class are kept of a channel."""

_SHARD = 256  # images, about: what is done again after a kill
_MOST = {"top": 100, "batch": 1024, "patch": 512}


@dataclass(frozen=True, eq=False)
class Plan:
    """Inputs and options that decide what an atlas holds.

    Attributes:
        model: from `load_model` or `wrap`.
        sources: the images, in order; an image's index in it stands for it everywhere.
        table: the model's channels.
        top: how many images are kept of each channel.
        batch: images a pass; 1 gives exactly the values of `capture`.
        size: side of the inputs in pixels; None for the model's own.
        dtype: one of `DTYPES`.
        patch: the longer side of a patch in pixels, at most.
    """

    model: Model
    sources: Sequence[Source] = field(repr=False)
    table: ChannelTable = field(repr=False)
    top: int = TOP
    batch: int = BATCH
    size: int | None = None
    dtype: str = "float32"
    patch: int = 64

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Folders that the images lie in, sorted.

        Empty where one image lies in no folder, or where the folders are more than `MAX_CLASSES`:
        those are of another kind, such as one a day.
        """
        names = {source.category for source in self.sources}
        return () if "" in names or len(names) > MAX_CLASSES else tuple(sorted(names))

    @cached_property
    def class_numbers(self) -> dict[str, int]:
        """Index of each class."""
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def shards(self) -> tuple[range, ...]:
        """Indices of the images of each shard: whole batches, about 256 images."""
        step = max(1, _SHARD // self.batch) * self.batch
        indices = range(len(self.sources))
        return tuple(indices[start : start + step] for start in range(0, len(indices), step))

    def described(self) -> dict[str, Any]:
        """Describe it as plain data, to tell whether work that was begun is of this plan."""
        names = hashlib.blake2b(digest_size=16)
        for source in self.sources:
            names.update(source.name.encode("utf-8", "surrogateescape") + b"\0")
        return {
            "model": self.model.name,
            "digest": self.model.digest,
            "preprocess": steps(self.model),
            "images": len(self.sources),
            "names": names.hexdigest(),
            "layers": list(self.table.by_address),
            "top": self.top,
            "batch": self.batch,
            "size": self.size,
            "dtype": self.dtype,
            "patch": self.patch,
        }

    @staticmethod
    def check(top: int, batch: int, patch: int, dtype: str) -> None:
        """Check that all options mean something.

        Raises:
            SettingError: a number is none from 1 up to its limit, or there is no such precision.
        """
        for name, value in {"top": top, "batch": batch, "patch": patch}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingError(f"{name}={shorten(repr(value))} is no whole number above 0.")
            if value > _MOST[name]:
                raise SettingError(f"{name}={value} is too much; it can be 1 to {_MOST[name]}.")
        one_of("dtype", dtype, DTYPES)


def differences(begun: dict[str, Any], plan: dict[str, Any]) -> str:
    """Say in which parts two descriptions of plans differ; empty where they don't."""
    different = [
        _WORDS[name].format(json.dumps(begun.get(name)), json.dumps(value))
        for name, value in plan.items()
        if begun.get(name) != value
    ]
    return "; ".join(dict.fromkeys(shorten(part, 120) for part in different))


_WORDS = {
    "model": "its model is {}, not {}",
    "digest": "it is of other weights",
    "preprocess": "its model makes its inputs in another way",
    "images": "it is of {} images, not {}",
    "names": "it is of other images",
    "layers": "it is of other layers",
    "top": "top is {}, not {}",
    "batch": "batch is {}, not {}",
    "size": "size is {}, not {}",
    "dtype": "dtype is {}, not {}",
    "patch": "patch is {}, not {}",
}
