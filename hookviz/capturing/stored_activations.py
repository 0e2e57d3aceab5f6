"""Write activations of many images to a folder, shard by shard, and read them back lazily.

How a shard is stored is in `hookviz.capturing.activation_stores`.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from hookviz.capturing.activation_stores import Shard, Store, different_sizes, store_in
from hookviz.capturing.image_shards import ImageShard
from hookviz.errors import HookVizError, SettingError, UnknownNameError
from hookviz.images.files import is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import InputImage, Model, ModelInput

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
