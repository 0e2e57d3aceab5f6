"""Compare two networks over many images: the similarity of their layers, and matching channels.

Layers are compared by linear CKA, which tells how similar they are by which images each of them
finds similar: Kornblith et al., "Similarity of Neural Network Representations Revisited", 2019
(https://arxiv.org/abs/1905.00414). The unbiased estimate of HSIC is Song et al.'s, "Supervised
Feature Selection via Dependence Estimation", 2007 (https://arxiv.org/abs/0704.2668), as Nguyen et
al., "Do Wide and Deep Networks Learn the Same Things?", 2021 (https://arxiv.org/abs/2010.15327),
take it for CKA.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hookviz import markup
from hookviz.capturing.batch_images import name_images
from hookviz.comparing.channel_means import Means, Side, channel_means
from hookviz.drawing.comparison_pages import similarity_figure
from hookviz.drawing.figures import figure_file
from hookviz.engines.engine import Engine, engine_of
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, shorten
from hookviz.models.wrapping import as_model
from hookviz.types import Model, Progress, ignore
from hookviz.wording import csv_cell

if TYPE_CHECKING:  # drawing alone knows matplotlib
    from matplotlib.figure import Figure

_FEW = 50  # images below which it is said that chance is at work

Floats = NDArray[np.float64]

Rows = NDArray[np.floating[Any]]
"""A row for each image, ``(N, D)``."""

_LEAST_IMAGES = 4  # that the unbiased estimate needs: its denominators contain N - 3

_NONE: Mapping[str, str] = MappingProxyType({})

_MOST_NUMBERS = 1 << 24  # numbers of Gram matrices in memory at once, 128 MB


@dataclass(frozen=True, eq=False, slots=True)
class ChannelMatches:
    """For each channel of A's layer the most correlated channel of B's layer.

    Attributes:
        layer: A's, by its written address.
        other_layer: B's.
        channels: the channel of B's layer, int64 ``(C,)``; -1 where there is none.
        correlations: Pearson's, float64 ``(C,)``, of the two channels' means over the images; NaN
            where there is none.
    """

    layer: str
    other_layer: str
    channels: NDArray[np.int64]
    correlations: Floats = field(repr=False)

    @property
    def best_first(self) -> NDArray[np.int64]:
        """A's channels by their correlation, the highest first, int64 ``(C,)``; NaN last."""
        return np.argsort(-self.correlations, kind="stable").astype(np.int64)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Linear CKA of each layer of model A with each of model B, over a set of images.

    Attributes:
        models: the names of A and B.
        weights: ``"pretrained"``, ``"random"`` or a file's name, of A and B.
        digests: hashes of the weights of A and B.
        layers: A's, by written address, in order of execution.
        other_layers: B's.
        cka: linear CKA of each layer of A with each of B, float64 ``(A, B)``, at most 1; NaN where
            a layer gives all images the same means.
        unbiased: whether it is estimated without bias, as in `linear_cka`.
        names: of the images that went through both models, ``(N,)``.
        failed: why images were left out, by their names.
    """

    models: tuple[str, str]
    weights: tuple[str, str]
    digests: tuple[str, str]
    layers: tuple[str, ...]
    other_layers: tuple[str, ...]
    cka: NDArray[np.float64] = field(repr=False)
    unbiased: bool
    names: tuple[str, ...] = field(repr=False)
    failed: Mapping[str, str]
    _means: tuple[Means, Means] = field(repr=False)

    def nearest(self) -> dict[str, tuple[str, float]]:
        """Return for each layer of A the layer of B of the highest CKA, and that CKA.

        Of equal ones it is the first in order of execution. A layer without any CKA is left out.
        """
        nearest = {}
        for layer, row in zip(self.layers, self.cka, strict=True):
            if not np.isnan(row).all():
                best = int(np.nanargmax(row))
                nearest[layer] = self.other_layers[best], float(row[best])
        return nearest

    def matches(self, layer: str, other_layer: str | None = None) -> ChannelMatches:
        """Return for each channel of A's layer the best-matching channel of B's.

        Two channels match by the correlation of their means over the maps, image by image: whether
        they rise and fall together from one image to the next, wherever in the image. With few
        images the best of many candidates is high by chance alone.

        Args:
            layer: one of `layers`.
            other_layer: one of `other_layers`; by default the one of the highest CKA.

        Raises:
            UnknownLayerError: that layer is not among them.
            HookVizError: no layer of B is like this one at all, so that one has to be named.

        >>> model = hookviz.load_model("shapesnet")
        >>> images = [f"assets/samples/{name}.jpg" for name in ("cat", "dots", "star", "heart")]
        >>> result = hookviz.similarity(model, model, images)
        >>> result.matches("stage3.first.conv", "stage3.first.conv").channels[:4]
        array([0, 1, 2, 3])
        """
        if layer not in self.layers:
            raise UnknownLayerError(f"compared layer of {self.models[0]}", layer, self.layers)
        if other_layer is None:
            if layer not in (nearest := self.nearest()):
                raise HookVizError(
                    f"{layer} gives all images the same means, so no layer of {self.models[1]} is "
                    "the nearest; name one by other_layer=."
                )
            other_layer = nearest[layer][0]
        if other_layer not in self.other_layers:
            where = f"compared layer of {self.models[1]}"
            raise UnknownLayerError(where, other_layer, self.other_layers)
        first, second = self._means
        return ChannelMatches(layer, other_layer, *best_matches(first[layer], second[other_layer]))

    def figure(self, *, colormap: str = "viridis", title: str | None = None) -> "Figure":
        """Draw the matrix, 0 to 1, with A's first layer at the top and B's at the left.

        Raises:
            SettingError: `colormap` is not in `COLORMAPS`.
        """
        first, second = self._model_titles
        return similarity_figure(
            self.cka,
            self.layers,
            self.other_layers,
            title=f"{first} and {second}, {self._images}" if title is None else title,
            row_title=first,
            column_title=second,
            colormap=colormap,
        )

    def figure_bytes(self, format: str = "png", dpi: int = 150) -> bytes:  # noqa: A002 - as savefig
        """Return the `figure` as a file: ``"png"``, ``"pdf"`` or ``"svg"``.

        Only one thread draws at a time.

        Raises:
            SettingError: `format` is not one of these.
        """
        return figure_file(self.figure, format, dpi=dpi)

    def csv(self) -> str:
        """Return the matrix as CSV: a row for each layer of A, a column for each of B.

        Every number with all its digits, ``nan`` where there is none.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["layer", *map(csv_cell, self.other_layers)])
        for layer, row in zip(self.layers, self.cka.tolist(), strict=True):
            writer.writerow([csv_cell(layer), *row])
        return file.getvalue()

    @property
    def note(self) -> str:
        """Warning that few images make these numbers uncertain; empty where there are enough."""
        if len(self.names) >= _FEW:
            return ""
        return (
            f"{self._images.capitalize()} are few: another set can give other numbers, and the "
            "best of many channels is alike by chance."
        )

    @property
    def _images(self) -> str:
        return f"{len(self.names):,} images"

    @property
    def _model_titles(self) -> tuple[str, str]:
        first, second = (
            f"{name} ({shorten(weights)})"
            for name, weights in zip(self.models, self.weights, strict=True)
        )
        return first, second

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the matrix as a picture, and the nearest layer of each."""
        first, second = self._model_titles
        html = markup.element("p", f"{first} and {second}, {self._images}. {self.note}")
        html += markup.image(self.figure_bytes(dpi=80), "How alike the layers are, by linear CKA")
        rows = [(layer, *nearest) for layer, nearest in self.nearest().items()]
        table = markup.table((f"layer of {first}", f"nearest of {second}", "CKA"), rows)
        html += markup.details("The nearest layer of each", table, is_open=False)
        if self.failed:
            left = markup.table(("image", "why"), [*self.failed.items()])
            html += markup.details(f"{len(self.failed):,} left out", left, is_open=False)
        return html


def similarity(
    model_a: Model | nn.Module,
    model_b: Model | nn.Module,
    images: Mapping[str, Any] | Iterable[Any],
    layers: str | Iterable[str] | None = None,
    other_layers: str | Iterable[str] | None = None,
    *,
    size: int | None = None,
    whole: bool = False,
    unbiased: bool = True,
    progress: Progress = ignore,
    engine: str | Engine = "local",
) -> Similarity:
    """Compare each layer of one model with each layer of another, by linear CKA over images.

    Two layers are alike where they find the same images alike (Kornblith et al., 2019,
    https://arxiv.org/abs/1905.00414), whatever the shapes of their maps and the order of their
    channels. The mean of each channel over its map is compared: a row of C numbers for
    each image. Nothing but these rows stays in memory, 4 bytes a channel and image.

    Each image goes through each model once, beside a few others of its size where that gives the
    same numbers but for rounding. One that can't be read, or that a model can't take, is left out
    and named in `Similarity.failed`; the others go on.

    Args:
        model_a: from `load_model` or `wrap`, or a module of one's own.
        model_b: another one, or the same.
        images: anything that `capture` takes, several of it; as a mapping where they have names.
        layers: names of A's layers or blocks; every conv layer by default.
        other_layers: the same of B; every conv layer by default, whatever `layers` are.
        size: side of the inputs in pixels, in place of each model's own.
        whole: take in the whole images instead of their centre crops.
        unbiased: estimate CKA without bias, as in `linear_cka`; with fewer images than channels
            the plain one of the paper says that anything is alike.
        progress: called with the share done; what it raises ends the run.
        engine: runs the work on the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says.

    Raises:
        SettingError: `engine` means nothing.
        UnknownLayerError: a model lacks that layer.
        HookVizError: fewer than 4 images are given or go through; 2 without `unbiased`.

    >>> model = hookviz.load_model("shapesnet")
    >>> other = hookviz.load_model("shapesnet", "random")
    >>> images = [f"assets/samples/{name}.jpg" for name in ("cat", "dots", "star", "heart")]
    >>> alike = hookviz.similarity(model, model, images, "stage3", ["stage2", "stage3"])
    >>> alike.cka.round(3)[0].tolist()[1]
    1.0
    >>> hookviz.similarity(model, other, images).cka.shape  # (layers of A, layers of B)
    (10, 10)
    """
    model_a, model_b = as_model(model_a), as_model(model_b)
    listed = dict(name_images(model_a, images))
    _check_count(len(listed), unbiased=unbiased)
    a = Side(model_a, _names(layers), size, whole)
    b = Side(model_b, _names(other_layers), size, whole)
    if model_a is model_b and a.layers == b.layers:
        b = a  # an image goes through once
    means = channel_means(a, b, listed, progress, engine_of(engine))
    _check_count(len(means.names), unbiased=unbiased, left_out=means.failed)
    cka = linear_cka([*means.a.values()], [*means.b.values()], unbiased=unbiased)
    cka.setflags(write=False)
    return Similarity(
        models=(model_a.name, model_b.name),
        weights=(model_a.weights, model_b.weights),
        digests=(model_a.digest, model_b.digest),
        layers=tuple(means.a),
        other_layers=tuple(means.b),
        cka=cka,
        unbiased=unbiased,
        names=means.names,
        failed=means.failed,
        _means=(means.a, means.b),
    )


def _names(layers: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if layers is None or isinstance(layers, str):
        return None if layers is None else (layers,)
    if not isinstance(layers, Iterable):
        raise SettingError(f"layers={shorten(repr(layers))}: give names, as list_layers has them.")
    return tuple(dict.fromkeys(layers))


def linear_cka(first: Sequence[Rows], second: Sequence[Rows], *, unbiased: bool = True) -> Floats:
    """Return the linear CKA of each of `first` with each of `second`: float64 ``(A, B)``, up to 1.

    ``HSIC(K, L) / √(HSIC(K, K) HSIC(L, L))`` of the Gram matrices ``K = XXᵀ`` and ``L = YYᵀ``. It
    stays the same where a layer is turned (an orthogonal map) or scaled as a whole. NaN where
    a layer gives all images the same row.

    The Gram matrices, ``(N, N)`` each, are never in memory as a whole: the rows themselves bound N.

    A layer is ``(N, D)``, a row an image, finite; D can differ from layer to layer. `unbiased`
    estimates each HSIC without bias. With fewer images than columns the plain one is near 1 for
    layers that have nothing in common; this one is near 0, and can be below.

    Raises:
        HookVizError: there are fewer than 4 images, or 2 for the plain estimate.
    """
    count = len(first[0])
    _check_count(count, unbiased=unbiased)
    layers = [*first, *second]
    others = len(first)  # where the second ones begin
    cross = np.zeros((len(first), len(second)))
    own = np.zeros(len(layers))
    for part in _row_slices(count, len(layers)):
        grams = np.empty((len(layers), len(range(count)[part]), count))
        for rows, gram in zip(layers, grams, strict=True):
            _put_gram(gram, _centred(rows), part, diagonal=not unbiased)
        flat = grams.reshape(len(layers), -1)
        cross += flat[:others] @ flat[others:].T
        own += np.einsum("ij,ij->i", flat, flat)
    if unbiased:
        sums = np.stack([_row_sums(_centred(rows)) for rows in layers])
        cross += _rest(sums[:others], sums[others:])
        own += np.array([_rest(row[None], row[None])[0, 0] for row in sums])
    with np.errstate(invalid="ignore", divide="ignore"):  # of a layer that is always the same
        scale = np.sqrt(np.outer(own[:others], own[others:]))
        cka: Floats = np.clip(cross / scale, -1, 1)
    return cka


def _check_count(count: int, *, unbiased: bool, left_out: Mapping[str, str] = _NONE) -> None:
    """Raise if there are too few images for CKA.

    Raises:
        HookVizError: there are fewer than 4, or 2 for the plain estimate.
    """
    least = _LEAST_IMAGES if unbiased else 2
    if count >= least:
        return
    less = f"; unbiased=False takes {count}" if 2 <= count < _LEAST_IMAGES else ""
    why = ""
    if left_out:
        name, reason = next(iter(left_out.items()))
        why = f" Left out: {len(left_out):,}. {shorten(name)}: {reason}"
    raise HookVizError(
        f"CKA needs {least} images at least, and there {'is' if count == 1 else 'are'} {count}"
        f"{less}. A hundred and more give a figure that holds.{why}"
    )


def _row_slices(count: int, layers: int) -> Iterator[slice]:
    """Yield slices of rows so that these rows of all Gram matrices fit into memory together."""
    step = max(1, _MOST_NUMBERS // (count * layers))
    return (slice(start, start + step) for start in range(0, count, step))


def _put_gram(gram: Floats, values: Floats, part: slice, *, diagonal: bool) -> None:
    """Write the rows `part` of the Gram matrix of centred `values` into `gram`, ``(part, N)``."""
    np.matmul(values[part], values.T, out=gram)
    if not diagonal:
        here = np.arange(len(values))[part]
        gram[np.arange(len(here)), here] = 0


def _row_sums(values: Floats) -> Floats:
    """Return the row sums of the Gram matrix without its diagonal, ``(N,)``."""
    sums: Floats = values @ values.sum(0) - np.einsum("ij,ij->i", values, values)
    return sums


def _rest(first: Floats, second: Floats) -> Floats:
    """Return what the unbiased HSIC adds to tr(KL), from the Gram matrices' row sums, ``(A, B)``.

    All three terms are in units of N (N - 3), which CKA loses.
    """
    count = first.shape[1]
    totals = np.outer(first.sum(1), second.sum(1)) / ((count - 1) * (count - 2))
    rest: Floats = totals - 2 / (count - 2) * (first @ second.T)
    return rest


def _centred(rows: Rows) -> Floats:
    """Centre the columns and divide by the largest value, so that squares stay within range."""
    wide = rows.astype(np.float64)
    wide -= wide[0].copy()  # so that a column of equal numbers is 0, and not off by a rounding
    wide -= wide.mean(0)
    return wide / (np.abs(wide).max(initial=0) or 1.0)


def best_matches(first: Rows, second: Rows) -> tuple[NDArray[np.int64], Floats]:
    """Return for each column of `first` the most correlated column of `second`, and how much it is.

    A channel that falls where another one rises is another detector, so -0.9 is no match. Of equal
    ones it is the lower number. A column that is the same for all images has no correlation: it
    matches none, -1 and NaN.

    Both are finite, ``(N, C)`` and ``(N, D)``, a row an image.
    """
    one, other = _standardised(first), _standardised(second)
    varies = other.any(0)
    best = np.full(one.shape[1], -1, np.int64)
    correlations = np.full(one.shape[1], np.nan)
    if varies.any():
        products = np.where(varies, one.T @ other, -np.inf)
        known = one.any(0)
        best[known] = products.argmax(1)[known]
        correlations[known] = np.clip(products.max(1)[known], -1, 1)
    for array in (best, correlations):
        array.setflags(write=False)
    return best, correlations


def _standardised(rows: Rows) -> Floats:
    """Centre the columns and scale them to length 1; a constant column becomes zeros."""
    wide = rows.astype(np.float64)
    wide -= wide[0].copy()  # so that a column of equal numbers is 0, and not off by a rounding
    wide -= wide.mean(0)
    wide /= np.abs(wide).max(0, initial=0) + (wide == 0).all(0)
    lengths = np.sqrt(np.einsum("ij,ij->j", wide, wide))
    standardised: Floats = wide / np.where(lengths == 0, 1, lengths)
    return standardised
