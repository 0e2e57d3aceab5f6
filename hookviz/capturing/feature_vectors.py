"""Compare images by vectors from one layer of one model, and write the vectors to a file."""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import feature_files
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.language.saying import joined, mark, say
from hookviz.paths import path_of
from hookviz.types import Activation

_ROWS = 256  # of the similarities of any two that are computed at once
_AT_ONCE = 1 << 22  # numbers of vectors that are wide in memory at once
_SUFFIXES = (".npz", ".parquet")

POOLS = {
    mark("mean"): mark("the mean of each channel over all positions"),
    mark("flat"): mark("every value, channel by channel"),
}
"""How the values of a layer become one vector."""


@dataclass(frozen=True, eq=False)
class Features:
    """Vectors of images, one each, all from one layer of one model.

    Attributes:
        model: the model's name.
        weights: ``"pretrained"``, ``"random"`` or a file's name.
        digest: hash of the model's weights.
        layer: whose output the vectors are made of.
        pool: one of `POOLS`.
        names: what the images are called, each name once, ``(N,)``.
        vectors: float32, ``(N, D)``.
        failed: why images have no vector, by their names.
        size: side of the inputs in pixels where it was not the model's own.
        whole: whether the whole images were taken in.
        preprocess: how the model's inputs are made of images, as JSON; empty for a function.
        files: where each image lies, absolute; empty for what was no file; as many as `names`, or
            none at all.
    """

    model: str
    weights: str
    digest: str
    layer: str
    pool: str
    names: tuple[str, ...]
    vectors: NDArray[np.float32] = field(repr=False)
    failed: Mapping[str, str]
    size: int | None = None
    whole: bool = False
    preprocess: str = field(default="", repr=False)
    files: tuple[str, ...] = field(default=(), repr=False)

    def similarity(self) -> NDArray[np.float64]:
        """Return the cosine of the angle between any two vectors, ``(N, N)``: x·y / (‖x‖ ‖y‖).

        1 is the same direction, 0 a right angle, -1 the opposite direction. A vector of zeros has
        no direction: it has 0 with all, itself included. One with a NaN or an infinite value has
        NaN.
        """
        unit = unit_vectors(self.vectors)
        cosines: NDArray[np.float64] = np.clip(unit @ unit.T, -1, 1)
        return cosines

    def similarity_to(self, vector: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the cosine of the angle between each vector and another one, ``(N,)``.

        Equal vectors have equal numbers, to the last digit, whatever their place.

        Raises:
            HookVizError: `vector` has another length than these, ``(D,)``.
        """
        count, size = self.vectors.shape
        if np.shape(vector) != (size,):
            raise HookVizError(
                say(
                    "A vector of {length:,} numbers can't be compared with these, which have "
                    "{expected_length:,} each: inputs of another size, or another layer.",
                    length=np.size(vector),
                    expected_length=size,
                )
            )
        cosines = np.empty(count)
        one = unit_vectors(np.asarray(vector)[None])[0]
        rows = max(1, _AT_ONCE // size)
        for start in range(0, count, rows):
            # summed row by row, where a matrix product would round by a row's place in it
            unit = unit_vectors(self.vectors[start : start + rows])
            cosines[start : start + rows] = (unit * one).sum(1)
        return np.clip(cosines, -1, 1)

    def nearest(self, count: int = 1) -> dict[str, tuple[tuple[str, float], ...]]:
        """Return for each image the `count` others most similar to it, with the similarity.

        Equal ones come in the images' own order, and those without a number last.

        Raises:
            HookVizError: `count` is less than 1.

        >>> model = hookviz.load_model("shapesnet")
        >>> paths = [f"assets/samples/{name}.jpg" for name in ("cat", "checks", "dots", "star")]
        >>> [(name, round(alike, 2)) for name, alike in
        ...  hookviz.extract_features(model, paths).nearest()["dots.jpg"]]
        [('cat.jpg', 0.51)]
        """
        if count < 1:
            raise HookVizError(say("count={count} is not a whole number above 0.", count=count))
        neighbours = {}
        for place, (name, row) in enumerate(zip(self.names, self._rows(), strict=True)):
            order = np.argsort(-row, kind="stable")
            best = order[order != place][:count]
            neighbours[name] = tuple((self.names[other], float(row[other])) for other in best)
        return neighbours

    def _rows(self) -> Iterator[NDArray[np.float64]]:
        """Yield `similarity` row by row: the whole takes gigabytes for 10,000 images."""
        unit = unit_vectors(self.vectors)
        for start in range(0, len(unit), _ROWS):
            yield from np.clip(unit[start : start + _ROWS] @ unit.T, -1, 1)

    def npz(self) -> bytes:
        """Return an NPZ file with ``names`` and ``vectors``, and with where they come from.

        ``numpy.load`` reads it; ``layer``, ``model``, ``weights``, ``digest`` and ``pool`` are
        texts.
        """
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {"names": np.array(self.names), "vectors": self.vectors}
        np.savez_compressed(buffer, **arrays, **self._about())
        return buffer.getvalue()

    def parquet(self, folder: str | os.PathLike[str] | None = None) -> bytes:
        """Return a Parquet file with a row per image: ``name``, ``path``, ``vector`` (D × float32).

        ``path`` leads to the image from `folder`, the one that the file is going to lie in; it is
        empty for what lies elsewhere, or was no file. The model, its weights and everything that
        the vectors depend on are in the metadata of the schema.

        Raises:
            HookVizError: pyarrow is not installed.
        """
        inside = tuple(_from(folder, file) for file in self.files or ("",) * len(self.names))
        about = {**self._about(), "size": self.size or "", "whole": self.whole}
        about["preprocess"] = self.preprocess
        return feature_files.written(self.names, inside, self.vectors, about)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that `FeatureIndex.load` reads, ``.parquet``; or an ``.npz`` file.

        Raises:
            SettingError: the name ends in something else.
            HookVizError: pyarrow is not installed, or, for an index, a vector has NaN or infinite
                numbers, to which nothing is alike.
            OSError: the file can't be written.

        >>> import tempfile
        >>> model = hookviz.load_model("shapesnet")
        >>> features = hookviz.extract_features(model, ["assets/samples/dots.jpg"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     features.save(f"{folder}/index.parquet")
        ...     hookviz.FeatureIndex.load(f"{folder}/index.parquet").features.names
        ('dots.jpg',)
        """
        file = path_of(path)
        suffix = check_suffix(file)
        if suffix == ".parquet":
            check_finite(self.names, self.vectors)
        data = self.npz() if suffix == ".npz" else self.parquet(file.parent)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def _about(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "model": self.model,
            "weights": self.weights,
            "digest": self.digest,
            "pool": self.pool,
        }


def check_suffix(path: Path) -> str:
    """Return what a file of vectors ends in, in small letters; refuse any other ending.

    Raises:
        SettingError: neither ``.npz`` nor ``.parquet``.
    """
    suffix = path.suffix.casefold()
    if suffix not in _SUFFIXES:
        raise SettingError(
            say(
                "{path!r} ends in none of {suffixes}.",
                path=str(path),
                suffixes=joined(_SUFFIXES),
            )
        )
    return suffix


def check_finite(names: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Refuse vectors with numbers that are not finite.

    Raises:
        HookVizError: some are not; it names the first of those images.
    """
    wrong = np.flatnonzero(~np.isfinite(vectors).all(1))
    if len(wrong):
        raise HookVizError(
            say(
                "{count:,} of {vector_count:,} vectors have NaN or infinite numbers, "
                "first that of {image!r}, and nothing is alike to those. Leave these images "
                "out, or choose an earlier layer; the lens health says where such numbers "
                "begin.",
                count=len(wrong),
                vector_count=len(vectors),
                image=shorten(names[wrong[0]]),
            )
        )


def unit_vectors(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Scale each of the vectors, ``(N, D)``, to length 1, but for zeros."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # infinity / infinity
        unit: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1)
        return unit


def vector(activation: Activation, pool: str = "mean") -> NDArray[np.float32]:
    """Return the values as one vector, ``(D,)``: of maps, ``(C, …)``, or of vectors, ``(…, C)``.

    Args:
        activation: what the layer put out.
        pool: one of `POOLS`.

    Raises:
        HookVizError: there are no numbers in it.
    """
    values: NDArray[np.float32] = activation.values.numpy()
    if not values.size:
        raise HookVizError(say("{address} put out no numbers.", address=activation.address))
    if values.ndim > 1 and activation.channels_last:
        values = np.moveaxis(values, -1, 0)
    if pool == "mean" and values.ndim > 1:
        return channel_means(values)
    return values.reshape(-1).copy()


def channel_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each channel over all positions, ``(C,)``, of ``(C, …)``."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    means: NDArray[np.float32] = rows.mean(axis=1).astype(np.float32)
    return means


def _from(folder: str | os.PathLike[str] | None, file: str) -> str:
    """Return the path to a file from a folder that it is in, with ``/``; empty for any other."""
    if folder is None or not file:
        return ""
    real, top = Path(file).resolve(), Path(folder).resolve()
    return real.relative_to(top).as_posix() if real.is_relative_to(top) else ""
