"""Plan an atlas: the images, the channels of its layers in one row, and the shards of the work."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from hookviz.atlas.tally import TOP
from hookviz.capturing.batch_images import ONE_IMAGE, Images, images_of, named
from hookviz.capturing.features import steps
from hookviz.capturing.image_shards import read_input
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.errors import HookVizError, ModelError, SettingError, one_of, shorten
from hookviz.images.files import ImageUrl, expand, expand_url, is_url
from hookviz.language.saying import say
from hookviz.paths import path_of
from hookviz.types import UNKNOWN, ActivationKey, Layout, Model


@dataclass(frozen=True, slots=True)
class Source:
    """Image among those that an atlas is made of.

    Attributes:
        name: its path from the folder that was given, with ``/``, or what it is called.
        image: anything that `prepare_input` takes.
        category: the folder that it lies in, within the folder that was given; empty without one.
    """

    name: str
    image: Any = field(repr=False)
    category: str = ""

    @property
    def path(self) -> Path | None:
        """File of the image, where it is one of this machine."""
        if isinstance(self.image, str | os.PathLike) and not is_url(self.image):
            return path_of(self.image)
        return None


def sources(model: Model, images: Images) -> list[Source]:
    """List every image once: by name within a folder, else in the given order.

    A folder gives the images in its folders too. Those are classes: ``photos/cats/1.jpg`` of
    ``photos`` is of the class ``cats``.

    Args:
        model: for which they are.
        images: a folder, a pattern, a file, a URL, or several of these; or images themselves, a
            dataset or a loader of them, or by their names where it is a mapping, in which
            ``cats/1.jpg`` is of the class ``cats``.

    Raises:
        ImageError: a folder or a pattern gives no image.
        HookVizError: there is no image.
    """
    if isinstance(images, Mapping):
        listed = [Source(name, image, _first_folder(name)) for name, image in images.items()]
    else:
        if isinstance(images, ONE_IMAGE):
            images = [images]
        listed = list(_listed(images_of(model, images, expand_folders=False)))
    if not listed:
        raise HookVizError(say("There is no image to make an atlas of; give a folder, or a list."))
    return listed


def _listed(images: Iterable[Any]) -> Iterable[Source]:
    counts: Counter[str] = Counter()
    seen: set[Any] = set()

    def source(plain: str, image: Any, category: str = "") -> Source:
        counts[plain] += 1
        name = plain if counts[plain] == 1 else f"{plain} ({counts[plain]})"
        return Source(name, image, category)

    for index, image in enumerate(images, start=1):
        if not isinstance(image, str | os.PathLike | ImageUrl):
            [plain] = named([image])
            yield source(say("image {index}", index=index) if plain == "image 1" else plain, image)
            continue
        for within, file in _files(image):
            if file not in seen:
                seen.add(file)
                yield source(within, file, _first_folder(within))


def _files(path: str | os.PathLike[str] | ImageUrl) -> Iterable[tuple[str, Any]]:
    """List the files of a folder, a pattern or a name, each with its path from there."""
    if isinstance(path, ImageUrl) or is_url(path):
        return expand_url(str(path), inside=True)
    base = path_of(path)
    files = expand([os.fspath(path)], inside=True)
    if not base.is_dir():
        return [(file.name, file) for file in files]
    top = len(base.parts)
    return [("/".join(file.parts[top:]), file) for file in files if isinstance(file, Path)]


def _first_folder(name: str) -> str:
    """Return the first folder in a name with ``/``; empty where there is none."""
    first, _, rest = name.partition("/")
    return first if rest else ""


@dataclass(frozen=True, slots=True)
class LayerChannels:
    """Channels of one output of one call of a layer among those of all.

    Attributes:
        address: ``conv1``, or ``conv1#1`` for a second call, as captures have it.
        first: row of its channel 0 among all channels.
        channels: how many there are.
        cells: rows and columns of its maps for the model's own input; one row where it puts out
            lines, ``(C, L)``.
        dimensions: of its maps without the batch: 3, and 2 of lines.
        layout: how its output has these maps: channels first, or last, or in tokens.
    """

    address: str
    first: int
    channels: int
    cells: tuple[int, int]
    dimensions: int = 3
    layout: Layout = UNKNOWN

    @property
    def name(self) -> str:
        """Name of the layer, without the call."""
        return ActivationKey.read(self.address).layer

    @property
    def rows(self) -> slice:
        """Rows of its channels among all."""
        return slice(self.first, self.first + self.channels)


@dataclass(frozen=True)
class ChannelTable:
    """Channels of every layer that an atlas is of, in order of execution.

    Attributes:
        layers: one for each output of each call of each layer.
        input_shape: of the input whose pass listed them, ``(C, H, W)``.
    """

    layers: tuple[LayerChannels, ...]
    input_shape: tuple[int, ...] = ()

    @property
    def channels(self) -> int:
        """Number of channels in all layers."""
        return sum(layer.channels for layer in self.layers)

    @cached_property
    def by_address(self) -> Mapping[str, LayerChannels]:
        """Layers by their written addresses."""
        return {layer.address: layer for layer in self.layers}


def channel_table(
    trace: LayerTrace,
    names: Collection[str] | None = None,
    input_shape: tuple[int, ...] = (),
) -> ChannelTable:
    """List the channels of layers that put out maps or lines, and leave out what is neither.

    Args:
        trace: of a pass.
        names: of the layers; None for those that the page lists first, `LayerTrace.usual`.
        input_shape: of that pass's input, ``(C, H, W)``.
    """
    listed = trace.usual if names is None else [each for each in trace.maps if each.name in names]
    layers: list[LayerChannels] = []
    first = 0
    for address in (address for layer in listed for address in _outputs(trace, layer.name)):
        channels, *cells = trace.shapes[address]
        rows, columns = (1, *cells)[-2:]
        layout = trace.layouts.get(address, UNKNOWN)
        layers.append(
            LayerChannels(str(address), first, channels, (rows, columns), len(cells) + 1, layout)
        )
        first += channels
    return ChannelTable(tuple(layers), input_shape)


def _outputs(trace: LayerTrace, name: str) -> tuple[ActivationKey, ...]:
    """Return where a layer puts out maps, or lines; a volume is neither."""
    found = trace.map_outputs.get(name, ())
    return tuple(address for address in found if len(trace.shapes[address]) in (2, 3))


def check_takes_images(model: Model) -> None:
    """Check that a model takes images.

    Raises:
        ModelError: it takes something else.
    """
    if len(own_shape(model)) != 3:
        raise ModelError(
            say("{model} takes no images, so there is no atlas of it.", model=model.title)
        )


def trace_by(model: Model, image: object, size: int | None) -> tuple[LayerTrace, tuple[int, ...]]:
    """Trace the pass of one image, at that size if one is given, and return its input's shape too.

    Raises:
        ModelError: the network can't take it.
        HookVizError: it can't be read.
    """
    _, model_input, _ = read_input(model, image, size)
    return input_trace(model, model_input), tuple(model_input.tensor.shape[1:])


def table_by(model: Model, image: object, size: int | None) -> ChannelTable:
    """List the channels of the layers that the page lists first, by the pass of one image.

    Raises:
        ModelError: the network can't take it.
        HookVizError: it can't be read.
    """
    trace, input_shape = trace_by(model, image, size)
    return channel_table(trace, input_shape=input_shape)


def names_with_maps(
    model: Model, trace: LayerTrace, layers: str | Iterable[str] | None
) -> tuple[str, ...] | None:
    """Return the layers asked for, once each; None for those that the page lists first.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        SettingError: no layer is named, or something that is no name.
        ModelError: one of them puts out no maps.
    """
    if layers is None:
        return None
    names = wanted_layers(model, trace, layers)
    if not names:
        raise SettingError(say("No layer is named in layers; list_layers tells the names."))
    for name in names:
        if not _outputs(trace, name):
            raise _no_maps(model, trace, name)
    return names


def _no_maps(model: Model, trace: LayerTrace, name: str) -> ModelError:
    """Return the error for a layer without maps, which names the one that runs next to it."""
    turns = {layer: turn for (layer, call), turn in trace.turns.items() if not call}
    others = [layer.name for layer in trace.maps if _outputs(trace, layer.name)]
    if not others:
        return no_channels(model)
    if name in trace.functions.calls:
        return ModelError(
            say(
                "{layer} is a function in the network's code: an atlas is made of layers. Take the "
                "layer before it.",
                layer=name,
            )
        )
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out no maps, or nobody knows which of its axes are "
            "channels, rows and columns, so no atlas can take it. Layer {near!r}, which runs next "
            "to it, will do.",
            layer=name,
            model=model.title,
            near=min(others, key=lambda other: abs(turns[other] - turns[name])),
        )
    )


def no_channels(model: Model) -> ModelError:
    """Return the error for a network without layers that have maps."""
    return ModelError(say("{model} has no layer whose maps could be looked at.", model=model.title))


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
