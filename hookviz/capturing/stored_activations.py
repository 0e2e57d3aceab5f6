"""Write activations of many images to a folder, shard by shard, and read them back lazily.

A safetensors folder has ``activations.json``, which names the model and the images, and
``000000.safetensors`` and so on, one for each shard: an array ``(n, …)`` for each written address,
and in the metadata the images' names, their digests, and why others failed.

A Zarr group (format 3), whose name ends in ``.zarr``, has an array ``(N, …)`` for each address, in
chunks of ``batch_size`` images, and names the model in its attributes. ``_images`` has a group for
each shard, with the images' names as attributes:

1. Each array grows by the shard's rows, which are written.
2. The shard's group is written. After a kill, rows of a shard without a group are written again.
"""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from hookviz.capturing.image_shards import ImageShard
from hookviz.errors import HookVizError, SettingError, UnknownNameError
from hookviz.images.files import is_url
from hookviz.language.saying import say
from hookviz.paths import path_of, write_whole
from hookviz.types import InputImage, Model, ModelInput
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


_FORM = 1


class ShardWriter:
    """Writes one shard after another, and passes over those that an earlier run has written.

    Attributes:
        images_before: how many images it passed over.
    """

    def __init__(self, folder: Path, model: Model, options: Mapping[str, Any]) -> None:
        """Make the folder, or go on with the one that the same call has begun.

        Raises:
            SettingError: it holds another run.
            HookVizError: its name asks for Zarr, which is not installed.
        """
        self._store = store_in(folder)
        about = {"hookviz_activations": _FORM, "model": model.name, "weights": model.weights}
        about = json.loads(json.dumps(about | {"digest": model.digest, **options}))
        earlier = self._store.about
        if earlier is not None:
            _check_same(folder, earlier, about)
        elif folder.exists() and any(folder.iterdir()):
            raise SettingError(
                say("{folder!r} holds other files; give an empty folder.", folder=str(folder))
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._store.begin(about)
        self.images_before = 0
        # numbers of the shards that are being captured, and digests of their images
        self._to_write = deque[tuple[int, list[str]]]()

    def missing(self, shards: Iterable[ImageShard]) -> Iterator[ImageShard]:
        """Yield the shards that are not written yet.

        Raises:
            SettingError: one that is written has other images.
        """
        for number, shard in enumerate(shards):
            path, digests = self._store.path(number), [*map(_digest, shard.images)]
            if not path.exists():
                self._to_write.append((number, digests))
                yield shard
            elif self._store.shard(path).is_of(shard.names, digests):
                self.images_before += len(shard.names)
            else:
                raise SettingError(
                    say(
                        "{file!r} is of other images than those now given in its place; give "
                        "the same in the same order, or another folder.",
                        file=str(path),
                    )
                )

    def write(self, outcomes: Iterable[tuple[str, Any]]) -> None:
        """Write the next shard: tensors by address of each image, or why there are none."""
        made: dict[str, Mapping[str, Tensor]] = {}
        failed: dict[str, str] = {}
        names = []
        for name, outcome in outcomes:
            names.append(name)
            if isinstance(outcome, HookVizError):
                failed[name] = str(outcome)
            else:
                made[name] = outcome
        tensors = {
            address: _stacked(address, [parts[address] for parts in made.values()])
            for address in next(iter(made.values()), {})
        }
        number, digests = self._to_write.popleft()
        about = {"names": names, "failed": failed, "digests": digests}
        self._store.save(number, tensors, about)

    def finish(self) -> "StoredActivations":
        """Return what was written."""
        return StoredActivations(self._store.folder)


def _digest(image: Any) -> str:
    """Return a digest of an image in the form it came in; empty where nothing tells them apart."""
    match image:
        case InputImage() | ModelInput():
            return image.digest
        case bytes():
            data = image
        case Tensor() if image.layout == torch.strided and not (image.is_nested or image.is_meta):
            values = image.detach().cpu().flatten().contiguous().view(torch.uint8)
            data = f"{image.dtype} {tuple(image.shape)}".encode() + values.numpy().tobytes()
        case np.ndarray() if not image.dtype.hasobject:
            data = f"{image.dtype} {image.shape}".encode() + image.tobytes()
        case Image.Image():
            data = f"{image.mode} {image.size}".encode() + image.tobytes()
        case str() | os.PathLike() if not is_url(image):
            try:
                data = path_of(image).read_bytes()
            except OSError:  # the capture says so
                return ""
        case _:
            return ""
    return hashlib.sha256(data).hexdigest()


def _check_same(folder: Path, found: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    other = [name for name in about if found.get(name) != about[name]]
    if other:
        raise SettingError(
            say(
                "{folder!r} holds activations with {name}={earlier!r}, not {wanted!r}; give "
                "another folder, or the same as before.",
                folder=str(folder),
                name=other[0],
                earlier=found.get(other[0]),
                wanted=about[other[0]],
            )
        )


def _stacked(address: str, parts: list[Tensor]) -> Tensor:
    shapes = {tuple(part.shape) for part in parts}
    if len(shapes) > 1:
        raise different_sizes(address, shapes)
    return torch.stack(parts)


class StoredActivations(Mapping[str, "StoredLayer"]):
    """Activations of many images in a folder, by written address; read when they are asked for.

    Args:
        folder: that `hookviz.stream` wrote.

    Raises:
        HookVizError: it holds no such files.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = path_of(folder)
        self._store = store_in(self.folder)
        if self._store.about is None:
            raise HookVizError(
                say(
                    "{folder!r} holds no activations: there is no {file}. hookviz.stream(model, "
                    "images, layers, to=folder) writes them.",
                    folder=str(self.folder),
                    file=self._store.about_file,
                )
            )
        self._shards = self._store.shards()

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """Model, weights, digest and options of the run."""
        return self._store.about or {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the images, in their order, ``(N,)``."""
        return tuple(name for shard in self._shards for name in shard.names)

    @cached_property
    def failed(self) -> Mapping[str, str]:
        """Why images are left out, by their names."""
        return {name: why for shard in self._shards for name, why in shard.failed.items()}

    def __getitem__(self, address: str) -> "StoredLayer":
        """Return one layer's activations.

        Raises:
            UnknownNameError: there is none at that address.
        """
        shards = [shard for shard in self._shards if shard.names]
        if not shards or address not in shards[0].shapes:
            raise UnknownNameError(say("stored layer"), address, list(self))
        return StoredLayer(address, self._store, shards)

    def __iter__(self) -> Iterator[str]:
        return iter(next((shard.shapes for shard in self._shards if shard.names), {}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"StoredActivations({str(self.folder)!r}, {len(self.names)} images, {list(self)})"


Rows = int | slice | Sequence[int] | Sequence[bool] | NDArray[np.integer | np.bool_] | Tensor
"""Which images are read."""


class StoredLayer:
    """One layer's activations of many images, ``(N, …)``, of which rows are read when asked for."""

    def __init__(self, address: str, store: Store, shards: list[Shard]) -> None:
        self.address = address
        self._store = store
        self._shards = shards
        self._ends = list(accumulate(shard.shapes[address][0] for shard in shards))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N, …)``; of images of several sizes the first one's."""
        return (len(self), *self._shards[0].shapes[self.address][1:])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: Rows) -> Tensor:
        """Read one image's activation, or those of several, ``(n, …)``, and no others.

        Args:
            index: as of an array: a number, a slice, a list of numbers, or a mask, ``(N,)``.

        Raises:
            IndexError: there is no such image.
        """
        if not isinstance(index, slice):
            index = np.asarray(index)
            index = index if index.size else index.astype(np.intp)  # an empty list has no type
        rows = np.arange(len(self))[index]
        if rows.ndim > 1:
            raise IndexError(f"images stand on one axis, and the index has {rows.ndim}")
        tensors = list(self._read(map(int, np.atleast_1d(rows))))
        if not rows.ndim:
            return tensors[0]
        return torch.stack(tensors) if tensors else self[:1][:0]

    def __iter__(self) -> Iterator[Tensor]:
        return self._read(range(len(self)))

    def _read(self, rows: Iterable[int]) -> Iterator[Tensor]:
        """Read rows one by one, with one look into each file for those that follow each other."""
        for number, own in groupby(rows, lambda row: bisect_right(self._ends, row)):
            begin = self._ends[number - 1] if number else 0
            numbers = [row - begin for row in own]
            yield from self._store.rows(self._shards[number], self.address, numbers)
