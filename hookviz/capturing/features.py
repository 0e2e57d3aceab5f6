"""What a layer makes of each image as one vector, to tell how alike images are to the network."""

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from hookviz.capturing import engine, inputs
from hookviz.capturing.layers import channels_last
from hookviz.capturing.survey import survey
from hookviz.errors import HookVizError, ImageError, UnknownLayerError, one_of, shorten
from hookviz.hooking.forward_pass import Telling
from hookviz.types import Activation, InputImage, Model, ModelInput, Progress, ignore

POOLS = {
    "mean": "the mean of each channel over all positions",
    "flat": "every value, channel by channel",
}
"""How the values of a layer become one vector."""


@dataclass(frozen=True, eq=False)
class Features:
    """One vector per image, all from one layer of one model.

    Attributes:
        model: the model's name.
        weights: ``"pretrained"``, ``"random"`` or a file's name.
        digest: hash of the model's weights.
        layer: whose output the vectors are made of.
        pool: one of `POOLS`.
        names: what the images are called, each name once, ``(N,)``.
        vectors: float32, ``(N, D)``.
        failed: why images have no vector, by their names.
    """

    model: str
    weights: str
    digest: str
    layer: str
    pool: str
    names: tuple[str, ...]
    vectors: NDArray[np.float32] = field(repr=False)
    failed: Mapping[str, str]

    def similarity(self) -> NDArray[np.float64]:
        """The cosine of the angle between any two vectors, ``(N, N)``: x·y / (‖x‖ ‖y‖).

        1 is the same direction, 0 a right angle, -1 the opposite direction. A vector of zeros has
        no direction: it has 0 with all, itself included. One with a NaN or an infinite value has
        NaN.
        """
        wide = self.vectors.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinity / infinity
            unit = wide / np.where(lengths > 0, lengths, 1)
        found: NDArray[np.float64] = np.clip(unit @ unit.T, -1, 1)
        return found

    def nearest(self, count: int = 1) -> dict[str, tuple[tuple[str, float], ...]]:
        """For each image the `count` others most similar to it, with the similarity, best first.

        Equal ones come in the images' own order, and those without a number last.

        Raises:
            HookVizError: `count` is less than 1.

        >>> model = hookviz.load_model("shapesnet")
        >>> paths = [f"assets/samples/{name}.jpg" for name in ("cat", "checks", "dots", "star")]
        >>> [(name, round(alike, 2)) for name, alike in
        ...  hookviz.extract_features(model, paths).nearest()["dots.jpg"]]
        [('checks.jpg', 0.84)]
        """
        if count < 1:
            raise HookVizError(f"count={count} is not a whole number above 0.")
        found = {}
        for place, (name, row) in enumerate(zip(self.names, self.similarity(), strict=True)):
            order = [other for other in np.argsort(-row, kind="stable") if other != place]
            found[name] = tuple((self.names[other], float(row[other])) for other in order[:count])
        return found

    def npz(self) -> bytes:
        """An NPZ file with ``names`` and ``vectors``, and with where they come from.

        ``numpy.load`` reads it; ``layer``, ``model``, ``weights``, ``digest`` and ``pool`` are
        texts.
        """
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {"names": np.array(self.names), "vectors": self.vectors}
        np.savez_compressed(buffer, **arrays, **self._about())
        return buffer.getvalue()

    def parquet(self) -> bytes:
        """A Parquet file with a row per image: ``name`` and ``vector``, D float32 numbers.

        The layer, the model, its weights and the pool are in the metadata of the schema.

        Raises:
            HookVizError: pyarrow is not installed.
        """
        try:
            pa = import_module("pyarrow")  # takes a while, and few need it
            parquet = import_module("pyarrow.parquet")
        except ImportError as error:
            raise HookVizError(
                "Parquet files are written by pyarrow, which is not installed; pip install "
                "pyarrow, or take the NPZ file, which has the same numbers."
            ) from error
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(self.vectors.reshape(-1), pa.float32()), self.vectors.shape[1]
        )
        # a file's name can hold bytes that are no text
        names = [name.encode("utf-8", "backslashreplace").decode() for name in self.names]
        table = pa.table({"name": pa.array(names, pa.string()), "vector": vectors})
        buffer = io.BytesIO()
        parquet.write_table(table.replace_schema_metadata(self._about()), buffer)
        return buffer.getvalue()

    def _about(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "model": self.model,
            "weights": self.weights,
            "digest": self.digest,
            "pool": self.pool,
        }


def features(
    model: Model,
    images: Mapping[str, Any] | Iterable[Any],
    layer: str | None = None,
    pool: str = "mean",
    *,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> Features:
    """One vector per image from a layer's output, of its first call.

    The passes end at the layer. An image that can't be read, or that the network can't take, is
    left out and told in `Features.failed`; the others go on.

    Args:
        model: from `load_model` or `wrap`.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layer: whose output; the last conv layer by default.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: told the share done; what it raises ends the run.

    Raises:
        UnknownLayerError: the model has no such layer.
        SettingError: `pool` is not one of `POOLS`.
        HookVizError: no image is given, or none gives a vector.

    >>> model = hookviz.load_model("shapesnet")
    >>> hookviz.extract_features(model, ["assets/samples/dots.jpg"]).vectors.shape  # (N, D)
    (1, 128)
    """
    one_of("pool", pool, POOLS)
    listed = dict(images) if isinstance(images, Mapping) else named(images)
    if not listed:
        raise HookVizError("There is no image to make features of; give at least one.")
    modules = dict(model.network.named_modules(remove_duplicate=False))
    if layer is not None and (not layer or layer not in modules):
        raise UnknownLayerError(f"layer in {model.title}", layer, filter(None, modules))
    telling = Telling(progress, len(listed))
    found: dict[str, NDArray[np.float32]] = {}
    failed: dict[str, HookVizError] = {}
    for name, image in listed.items():
        try:
            made = inputs.prepare(model, image, size=size, whole=whole)
            layer = layer or _last_conv(model, tuple(made.tensor.shape[1:]))
            capture = engine.capture(model, made, layer, logits=False, progress=telling.within)
            ratio = made.tensor.shape[-2] / made.tensor.shape[-1]
            vector = _vector(capture.calls(layer)[0], modules[layer], ratio, pool)
            _check_length(vector, found, pool)
            found[name] = vector
        except HookVizError as error:
            if telling.was_ended_by(error):
                raise
            failed[name] = error
        telling.step()
    if not found:
        name, reason = next(iter(failed.items()))
        if len(failed) == 1:
            raise reason
        raise HookVizError(f"No image gave features. {shorten(name)}: {reason}") from reason
    assert layer is not None
    vectors = np.stack(list(found.values()))
    vectors.setflags(write=False)
    return Features(
        model=model.name,
        weights=model.weights,
        digest=model.digest,
        layer=layer,
        pool=pool,
        names=tuple(found),
        vectors=vectors,
        failed={name: str(error) for name, error in failed.items()},
    )


def named(images: Iterable[Any]) -> dict[str, Any]:
    """The images by their names: of files, or ``"image 3"``; a name's second use gets a number."""
    found: dict[str, Any] = {}
    if isinstance(images, str | bytes | os.PathLike | Image.Image | InputImage | ModelInput):
        images = [images]
    if not isinstance(images, Iterable):
        raise ImageError(
            f"images={shorten(repr(images))} is no image and no sequence of them; give paths, bytes"
            ", Pillow images or tensors, such as ['cat.jpg', 'dog.jpg']."
        )
    for place, image in enumerate(images, start=1):
        plain = _name(image) or f"image {place}"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain} ({number})"
        found[name] = image
    return found


def _name(image: Any) -> str:
    if isinstance(image, InputImage):
        return image.name
    if isinstance(image, Image.Image):
        return Path(str(getattr(image, "filename", ""))).name
    return Path(image).name if isinstance(image, str | os.PathLike) else ""


def _last_conv(model: Model, shape: tuple[int, ...]) -> str:
    found = survey(model, shape)
    layers = found.convs or found.layers
    if not layers:
        raise HookVizError(f"{model.title} has no layer whose output could be a vector.")
    return layers[-1].name


def _vector(
    activation: Activation, module: nn.Module, ratio: float, pool: str
) -> NDArray[np.float32]:
    """The values as one vector, ``(D,)``: of ``(C, …)``, or ``(…, C)`` where channels are last."""
    values: NDArray[np.float32] = activation.values.numpy()
    if not values.size:
        raise HookVizError(f"{activation.address} put out no numbers.")
    if values.ndim > 1 and channels_last(values.shape, module, ratio):
        values = np.moveaxis(values, -1, 0)
    if pool == "mean" and values.ndim > 1:
        rows = values.reshape(len(values), -1).astype(np.float64)
        means: NDArray[np.float32] = rows.mean(axis=1).astype(np.float32)
        return means
    return values.reshape(-1).copy()


def _check_length(
    vector: NDArray[np.float32], found: Mapping[str, NDArray[np.float32]], pool: str
) -> None:
    """Refuse a vector of another length than those before."""
    expected = next(iter(found.values()), vector)
    if len(vector) != len(expected):
        hint = 'pool="mean" takes inputs of any size.' if pool == "flat" else ""
        raise HookVizError(
            f"It gives {len(vector):,} numbers and the first image {len(expected):,}, since their "
            f"inputs differ in size. {hint}".rstrip()
        )
