"""Compute linear CKA: how similar two layers are, by which images each of them finds similar.

Kornblith et al., "Similarity of Neural Network Representations Revisited", 2019
(https://arxiv.org/abs/1905.00414). The unbiased estimate of HSIC is Song et al.'s, "Supervised
Feature Selection via Dependence Estimation", 2007 (https://arxiv.org/abs/0704.2668), as Nguyen et
al., "Do Wide and Deep Networks Learn the Same Things?", 2021 (https://arxiv.org/abs/2010.15327),
take it for CKA.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import HookVizError, shorten

Floats = NDArray[np.float64]
Rows = NDArray[np.floating[Any]]
"""A row for each image, ``(N, D)``."""

LEAST_IMAGES = 4
"""Images that the unbiased estimate needs: its denominators contain N - 3."""

_NONE: Mapping[str, str] = MappingProxyType({})
_MOST_NUMBERS = 1 << 24  # numbers of Gram matrices in memory at once, 128 MB


def linear_cka(first: Sequence[Rows], second: Sequence[Rows], *, unbiased: bool = True) -> Floats:
    """Return the linear CKA of each of `first` with each of `second`: float64 ``(A, B)``, up to 1.

    ``HSIC(K, L) / √(HSIC(K, K) HSIC(L, L))`` of the Gram matrices ``K = XXᵀ`` and ``L = YYᵀ``. It
    stays the same where a layer is turned (an orthogonal map) or scaled as a whole. NaN where
    a layer gives all images the same row.

    The Gram matrices, ``(N, N)`` each, are never in memory as a whole: the rows themselves bound N.

    Args:
        first: ``(N, D)`` for each layer, a row an image, finite; D can be another for each.
        second: the same for other layers and the same images.
        unbiased: estimate each HSIC without bias. With fewer images than columns the plain one is
            near 1 for layers that have nothing in common; this one is near 0, and can be below.

    Raises:
        HookVizError: there are fewer than 4 images, or 2 for the plain estimate.
    """
    count = len(first[0])
    check_count(count, unbiased=unbiased)
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


def check_count(count: int, *, unbiased: bool, left_out: Mapping[str, str] = _NONE) -> None:
    """Raise if there are too few images for CKA.

    Args:
        count: how many there are.
        unbiased: as `linear_cka` has it.
        left_out: why others are not among them, by their names.

    Raises:
        HookVizError: there are fewer than 4, or 2 for the plain estimate.
    """
    least = LEAST_IMAGES if unbiased else 2
    if count >= least:
        return
    less = f"; unbiased=False takes {count}" if 2 <= count < LEAST_IMAGES else ""
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
