"""Store shards of activations in a folder: as safetensors files, or as arrays of a Zarr group.

A safetensors folder holds ``activations.json``, which says whose they are, and
``000000.safetensors`` and so on, one for every shard: by written address ``(n, …)``, and in the
metadata the names of its images, digests of them, and why others are left out.

A Zarr group (format 3), of a name that ends in ``.zarr``, holds an array ``(N, …)`` for each
address, in chunks of ``batch_size`` images, and whose they are in its attributes. Below ``_images``
is a group for each shard, whose attributes have the names:

1. Each array grows by the shard's rows, which are written.
2. The shard's group is written; a killed run writes the rows of a shard without one again.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from hookviz.errors import HookVizError, SettingError
from hookviz.language.saying import say
from hookviz.paths import write_whole
from hookviz.wording import times


@dataclass(frozen=True, slots=True)
class Shard:
    """Activations of the images of one shard, whose rows are read when asked for.

    Attributes:
        path: of its file.
        all_names: of its images, those included that failed.
        digests: of the images; empty where there is none.
        failed: why images are left out, by name.
        shapes: of the activations, ``(n, …)``, by address.
        start: number of its first row among those of all shards; where the store needs it.
    """

    path: Path
    all_names: tuple[str, ...]
    digests: tuple[str, ...]
    failed: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    start: int = 0

    def is_of(self, names: tuple[str, ...], digests: Iterable[str]) -> bool:
        """Whether it is of these images, as far as their digests are known."""
        pairs = zip(self.digests, digests, strict=False)
        return self.all_names == names and all(
            one == other or not (one and other) for one, other in pairs
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the images that have activations."""
        return tuple(name for name in self.all_names if name not in self.failed)


class Store(ABC):
    """Folder that shards of activations are written to and read from.

    Attributes:
        folder: the folder.
        about_file: name of the file in it that says whose activations they are.
        shard_files: pattern of the files that `path` names.
    """

    about_file: str
    shard_files: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    @abstractmethod
    def about(self) -> dict[str, Any] | None:
        """Model and options of the run; None where there is no run."""

    @abstractmethod
    def begin(self, about: Mapping[str, Any]) -> None:
        """Write the model and options of the run."""

    @abstractmethod
    def path(self, number: int) -> Path:
        """File that is there once a shard is written as a whole."""

    @abstractmethod
    def save(self, number: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a shard's tensors, and the names, failures and digests of its images."""

    @abstractmethod
    def shard(self, path: Path) -> Shard:
        """Read a shard that is written, but for its rows."""

    @abstractmethod
    def rows(self, shard: Shard, address: str, numbers: Sequence[int]) -> Iterator[Tensor]:
        """Read rows of an address, by their numbers within the shard, in that order."""

    def shards(self) -> list[Shard]:
        """Read all shards that are written, in order."""
        return [self.shard(path) for path in sorted(self.folder.glob(self.shard_files))]


def store_in(folder: Path) -> Store:
    """Return the store in a folder, of the format that its name asks for.

    Raises:
        HookVizError: it is Zarr's, which is not installed.
    """
    return (ZarrStore if folder.suffix == ".zarr" else SafetensorsStore)(folder)


class SafetensorsStore(Store):
    """Folder with a safetensors file for each shard, which is there whole or not at all."""

    about_file = "activations.json"
    shard_files = "*.safetensors"

    @property
    def about(self) -> dict[str, Any] | None:
        """Model and options of the run; None where there is no run."""
        return _json_in(self.folder / self.about_file)

    def begin(self, about: Mapping[str, Any]) -> None:
        """Write the model and options of the run."""
        write_whole(self.folder / self.about_file, json.dumps(about, indent=1).encode())

    def path(self, number: int) -> Path:
        """File of a shard."""
        return self.folder / f"{number:06}.safetensors"

    def save(self, number: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a shard's file."""
        # Under one key: safetensors writes several in an order of chance.
        write_whole(self.path(number), save(dict(tensors), {"images": json.dumps(about)}))

    def shard(self, path: Path) -> Shard:
        """Read the names and shapes in a file."""
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["images"])
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        return _shard(path, about, shapes)

    def rows(self, shard: Shard, address: str, numbers: Sequence[int]) -> Iterator[Tensor]:
        """Read rows of a file."""
        with safe_open(shard.path, "pt") as file:
            part = file.get_slice(address)
            for row in numbers:
                yield part[row : row + 1][0]


_SHARDS = "_images"


class ZarrStore(Store):
    """Zarr group with an array for each address."""

    about_file = "zarr.json"
    shard_files = f"{_SHARDS}/*/zarr.json"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        try:
            import_module("zarr")
        except ImportError as error:
            raise HookVizError(
                say(
                    "{folder!r} asks for Zarr, which is not installed: pip install zarr. Without "
                    ".zarr the folder gets safetensors.",
                    folder=str(folder),
                )
            ) from error

    @cached_property
    def _group(self) -> Any:
        return import_module("zarr").open_group(self.folder, mode="a", zarr_format=3)

    @property
    def about(self) -> dict[str, Any] | None:
        """Attributes of the group; None where there is no group of HookViz's."""
        attributes = (_json_in(self.folder / self.about_file) or {}).get("attributes", {})
        return attributes if "hookviz_activations" in attributes else None

    def begin(self, about: Mapping[str, Any]) -> None:
        """Write the group, and an empty one for the shards."""
        _write_group(self.folder, about)
        _write_group(self.folder / _SHARDS, {})

    def path(self, number: int) -> Path:
        """File that a shard's group has."""
        return self.folder / _SHARDS / f"{number:06}" / self.about_file

    def save(self, number: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a shard's rows behind those of the shards before it, then its group."""
        start = self._end(number - 1) if number else 0
        for address, tensor in tensors.items():
            self._write_rows(address, start, tensor)
        shapes = {address: list(tensor.shape) for address, tensor in tensors.items()}
        rows = {"start": start, "end": start + len(about["names"]) - len(about["failed"])}
        _write_group(self.path(number).parent, {**about, **rows, "shapes": shapes})

    def _end(self, number: int) -> int:
        return int(json.loads(self.path(number).read_text("utf-8"))["attributes"]["end"])

    def _write_rows(self, address: str, start: int, tensor: Tensor) -> None:
        try:
            values = tensor.numpy()
        except TypeError as error:
            raise SettingError(
                say(
                    "Zarr holds no {dtype}; dtype=torch.float16 takes as much of the disk.",
                    dtype=str(tensor.dtype),
                )
            ) from error
        shape = (start + len(values), *values.shape[1:])
        if address not in self._group:
            chunks = ((self.about or {})["batch_size"], *values.shape[1:])
            self._group.create_array(address, shape=shape, chunks=chunks, dtype=values.dtype)
        array = self._group[address]
        if array.shape[1:] != shape[1:]:
            raise different_sizes(address, (array.shape[1:], shape[1:]))
        array.resize(shape)
        array[start:] = values

    def shard(self, path: Path) -> Shard:
        """Read the names and shapes in a shard's group."""
        about = json.loads(path.read_text("utf-8"))["attributes"]
        shapes = {address: tuple(shape) for address, shape in about["shapes"].items()}
        return _shard(path, about, shapes)

    def rows(self, shard: Shard, address: str, numbers: Sequence[int]) -> Iterator[Tensor]:
        """Read the rows from the first to the last of them together: they share chunks."""
        first, end = shard.start + min(numbers), shard.start + max(numbers) + 1
        block = np.asarray(self._group[address][first:end])
        for row in numbers:
            yield torch.as_tensor(block[shard.start + row - first])


def different_sizes(address: str, shapes: Iterable[tuple[int, ...]]) -> SettingError:
    """Return the error for activations of one address that make no one tensor."""
    return SettingError(
        say(
            "{address} has {shapes} for images of different sizes, which make no one tensor; "
            'pool="mean" keeps a vector of each, and size= makes inputs of one size.',
            address=address,
            shapes=" and ".join(map(times, sorted(shapes))),
        )
    )


def _shard(path: Path, about: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Shard:
    names = tuple(about["names"])
    digests = tuple(about.get("digests") or [""] * len(names))
    return Shard(path, names, digests, about["failed"], shapes, about.get("start", 0))


def _json_in(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return content


def _write_group(folder: Path, attributes: Mapping[str, Any]) -> None:
    """Write the metadata of a Zarr group, which is there whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    write_whole(folder / ZarrStore.about_file, json.dumps(group, indent=1).encode())
