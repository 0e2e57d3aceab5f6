"""Linear CKA: how alike layers are by which inputs they find alike, whatever their channels are.

Kornblith et al., "Similarity of Neural Network Representations Revisited", 2019
(https://arxiv.org/abs/1905.00414). The unbiased estimate of HSIC is Song et al.'s, "Supervised
Feature Selection via Dependence Estimation", 2007 (https://arxiv.org/abs/0704.2668), as Nguyen et
al., "Do Wide and Deep Networks Learn the Same Things?", 2021 (https://arxiv.org/abs/2010.15327),
take it for CKA. Székely and Rizzo, "Partial distance correlation with methods for dissimilarities",
2014 (https://arxiv.org/abs/1310.2926), write it as an inner product, and it is computed so here.
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
"""That the unbiased estimate needs: its denominators have N - 3 in them."""

_NOBODY: Mapping[str, str] = MappingProxyType({})
_AT_ONCE = 1 << 24  # numbers of Gram matrices in memory at once, 128 MB


def linear_cka(first: Sequence[Rows], second: Sequence[Rows], *, unbiased: bool = True) -> Floats:
    """Linear CKA of each of `first` with each of `second`, float64 ``(A, B)``, at most 1.

    ``HSIC(K, L) / √(HSIC(K, K) HSIC(L, L))`` of the Gram matrices ``K = XXᵀ`` and ``L = YYᵀ``. It
    stays the same where a layer is turned (an orthogonal map) or scaled as a whole. NaN where
    a layer gives all images the same row.

    The Gram matrices, ``(N, N)`` each, are never there as a whole, so N is bounded by what holds
    the rows themselves.

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
    cross = np.zeros((len(first), len(second)))
    own_first, own_second = np.zeros(len(first)), np.zeros(len(second))
    for part in _parts(count, len(first) + len(second)):
        grams = [
            np.stack([_centred_gram(rows, part, unbiased=unbiased).ravel() for rows in side])
            for side in (first, second)
        ]
        cross += grams[0] @ grams[1].T
        own_first += np.einsum("ij,ij->i", grams[0], grams[0])
        own_second += np.einsum("ij,ij->i", grams[1], grams[1])
    with np.errstate(invalid="ignore"):  # 0 / 0 of a layer that is the same for all images
        found: Floats = np.clip(cross / np.sqrt(np.outer(own_first, own_second)), -1, 1)
    return found


def check_count(count: int, *, unbiased: bool, left_out: Mapping[str, str] = _NOBODY) -> None:
    """Nothing, where there are images enough for CKA.

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


def _parts(count: int, layers: int) -> Iterator[slice]:
    """The rows of all Gram matrices in parts that fit into memory together."""
    step = max(1, _AT_ONCE // (count * layers))
    return (slice(start, start + step) for start in range(0, count, step))


def _centred_gram(rows: Rows, part: slice, *, unbiased: bool) -> Floats:
    """Some rows of a centred Gram matrix, ``(part, N)``.

    Centring is Székely and Rizzo's U-centring where `unbiased`: the sum of the products of two such
    matrices is HSIC's unbiased estimate but for a factor that CKA loses.
    """
    values = _centred(rows)
    gram: Floats = values[part] @ values.T
    if not unbiased:
        return gram  # centred already: its rows' means were taken from the columns of `rows`
    count = len(values)
    sums = values @ values.sum(0) - np.einsum("ij,ij->i", values, values)  # off the diagonal
    gram -= (sums[part, None] + sums[None]) / (count - 2)
    gram += sums.sum() / ((count - 1) * (count - 2))
    here = np.arange(count)[part]
    gram[np.arange(len(here)), here] = 0
    return gram


def _centred(rows: Rows) -> Floats:
    """Columns about their means, in units of the largest value: squares stay within range."""
    wide = rows.astype(np.float64)
    wide -= wide[0].copy()  # so that a column of equal numbers is 0, and not off by a rounding
    wide -= wide.mean(0)
    return wide / (np.abs(wide).max(initial=0) or 1.0)
