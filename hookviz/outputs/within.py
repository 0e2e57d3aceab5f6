"""Ask about a part of an answer: a region of maps, or the box that overlaps it the most."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.outputs.boxes import is_boxes, scores_within
from hookviz.outputs.declaration import BOXES, MAPS, Output
from hookviz.outputs.reading import picked, two_sided

Cover = Callable[[int, int], NDArray[np.float64]]
"""The share of each cell of a map that is marked, ``(rows, columns)``, by how many there are."""


def within(output: Output, cover: Cover, size: tuple[int, int], labels: int, name: str) -> Output:
    """Return the declaration of an answer of maps or boxes that reads it within a region.

    Maps are their means over the region; boxes the scores of the one that overlaps it the most.

    Args:
        output: what the whole answer means.
        cover: what is marked.
        size: of the input, ``(H, W)``.
        labels: how many labels the network has; 0 where it has none.
        name: of the region, by which what is computed is kept.
    """
    cover = cache(cover)  # a lens may pass a hundred inputs, all of whose maps are of one size
    marked = cover(*size) > 0
    down, across = np.flatnonzero(marked.any(1)), np.flatnonzero(marked.any(0))
    edges = (
        across[0] / size[1],
        down[0] / size[0],
        (across[-1] + 1) / size[1],
        (down[-1] + 1) / size[0],
    )

    def part(raw: Any) -> Tensor:
        answer = picked(output.part, raw)
        if is_boxes(answer):
            return scores_within(answer, labels, edges, size)
        weights = torch.from_numpy(cover(*answer.shape[2:])).to(answer)
        means: Tensor = (two_sided(output, answer, labels) * weights).sum((2, 3)) / weights.sum()
        return means

    kind = BOXES if output.kind == BOXES else MAPS
    digest = blake2b(f"{output.key} {name}".encode(), digest_size=8).hexdigest()
    return replace(output, kind=kind, part=part, is_said=True, token=digest)
