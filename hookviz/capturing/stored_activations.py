"""Write activations of many images to a folder of safetensors files, and read them back lazily.

The folder holds ``activations.json``, which says whose they are, and ``000000.safetensors`` and so
on, one for every ``batch_size`` images: by written address ``(n, …)``, and in the metadata the
names of its images, digests of them, and why others are left out. A file is there whole or not at
all.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
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

ABOUT = "activations.json"
_FORM = 1


class ShardWriter:
    """Writes one shard after another, and passes over those that an earlier run has written.

    Attributes:
        images_before: how many images it passed over.
    """

    def __init__(self, folder: Path, model: Model, options: Mapping[str, Any]) -> None:
        """Make the folder, or go on with the one that the same call has begun.

        Raises:
            SettingError: it holds another run, or its name asks for another format.
        """
        if folder.suffix == ".zarr":
            raise SettingError(
                say(
                    "{folder!r} would be a folder of safetensors, not Zarr: give another name, "
                    "such as {other!r}.",
                    folder=str(folder),
                    other=str(folder.with_suffix("")),
                )
            )
        self._folder = folder
        about = {"hookviz_activations": _FORM, "model": model.name, "weights": model.weights}
        about = json.loads(json.dumps(about | {"digest": model.digest, **options}))
        file = folder / ABOUT
        if file.exists():
            _check_same(folder, json.loads(file.read_text("utf-8")), about)
        elif folder.exists() and any(folder.iterdir()):
            raise SettingError(
                say("{folder!r} holds other files; give an empty folder.", folder=str(folder))
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(about, indent=1).encode())
        self.images_before = 0
        # numbers of the shards that are being captured, and digests of their images
        self._to_write = deque[tuple[int, list[str]]]()

    def missing(self, shards: Iterable[ImageShard]) -> Iterator[ImageShard]:
        """Yield the shards that are not written yet.

        Raises:
            SettingError: one that is written has other images.
        """
        for number, shard in enumerate(shards):
            path, digests = self._path(number), [*map(_digest, shard.images)]
            if not path.exists():
                self._to_write.append((number, digests))
                yield shard
            elif _Shard.read(path).is_of(shard.names, digests):
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
        # Under one key: safetensors writes several in an order of chance.
        about = {"images": json.dumps({"names": names, "failed": failed, "digests": digests})}
        write_whole(self._path(number), save(tensors, about))

    def finish(self) -> "StoredActivations":
        """Return what was written."""
        return StoredActivations(self._folder)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}.safetensors"


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
        raise SettingError(
            say(
                "{address} has {shapes} for images of different sizes, which make no one tensor; "
                'pool="mean" keeps a vector of each, and size= makes inputs of one size.',
                address=address,
                shapes=" and ".join(map(times, sorted(shapes))),
            )
        )
    return torch.stack(parts)


@dataclass(frozen=True, slots=True)
class _Shard:
    path: Path
    all_names: tuple[str, ...]
    digests: tuple[str, ...]
    failed: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def read(cls, path: Path) -> "_Shard":
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["images"])
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        names = tuple(about["names"])
        digests = tuple(about.get("digests") or [""] * len(names))
        return cls(path, names, digests, about["failed"], shapes)

    def is_of(self, names: tuple[str, ...], digests: Iterable[str]) -> bool:
        """Whether it is of these images, as far as their digests are known."""
        pairs = zip(self.digests, digests, strict=False)
        return self.all_names == names and all(
            one == other or not (one and other) for one, other in pairs
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.all_names if name not in self.failed)


class StoredActivations(Mapping[str, "StoredLayer"]):
    """Activations of many images in a folder, by written address; read when they are asked for.

    Args:
        folder: that `hookviz.stream` wrote.

    Raises:
        HookVizError: it holds no such files.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = path_of(folder)
        if not (self.folder / ABOUT).exists():
            raise HookVizError(
                say(
                    "{folder!r} holds no activations: there is no {file}. hookviz.stream(model, "
                    "images, layers, to=folder) writes them.",
                    folder=str(self.folder),
                    file=ABOUT,
                )
            )
        self._shards = [_Shard.read(path) for path in sorted(self.folder.glob("*.safetensors"))]

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """Model, weights, digest and options of the run."""
        about: Mapping[str, Any] = json.loads((self.folder / ABOUT).read_text("utf-8"))
        return about

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
        return StoredLayer(address, shards)

    def __iter__(self) -> Iterator[str]:
        return iter(next((shard.shapes for shard in self._shards if shard.names), {}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"StoredActivations({str(self.folder)!r}, {len(self.names)} images, {list(self)})"


class StoredLayer:
    """One layer's activations of many images, ``(N, …)``, of which rows are read when asked for."""

    def __init__(self, address: str, shards: list[_Shard]) -> None:
        self.address = address
        self._shards = shards
        self._ends = list(accumulate(shard.shapes[address][0] for shard in shards))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N, …)``; of images of several sizes the first one's."""
        return (len(self), *self._shards[0].shapes[self.address][1:])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int | slice) -> Tensor:
        """Read one image's activation, or those of a slice, ``(n, …)``, and no others.

        Raises:
            IndexError: there is no such image.
        """
        if isinstance(index, slice):
            rows = range(len(self))[index]
            return torch.stack(list(self._read(rows))) if rows else self[:1][:0]
        [tensor] = self._read([range(len(self))[index]])
        return tensor

    def __iter__(self) -> Iterator[Tensor]:
        return self._read(range(len(self)))

    def _read(self, rows: Iterable[int]) -> Iterator[Tensor]:
        """Read rows one by one, with one look into each file for those that follow each other."""
        for number, own in groupby(rows, lambda row: bisect_right(self._ends, row)):
            begin = self._ends[number - 1] if number else 0
            with safe_open(self._shards[number].path, "pt") as file:
                part = file.get_slice(self.address)
                for row in own:
                    yield part[row - begin : row - begin + 1][0]
