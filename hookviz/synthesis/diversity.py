"""Compute what pictures pay for: being alike to a layer, or changing from pixel to pixel."""

import torch
from torch import Tensor


def diversity_penalty(output: Tensor) -> Tensor:
    """The mean cosine of the pictures' Gram matrices, times their number; (), 0…N.

    ``G = A Aᵀ`` over the cells of the maps tells which channels go together, wherever that is. A
    climb that pays for it makes pictures that differ (Olah et al., 2017, Diversity).

    Args:
        output: ``(N, C, rows, columns)``, N at least 2.
    """
    flat = output.flatten(2)
    gram = (flat @ flat.transpose(1, 2)).flatten(1)
    gram = gram / gram.norm(dim=1, keepdim=True).clamp(min=1e-12)
    cosines = gram @ gram.T
    alike: Tensor = (cosines.sum() - torch.diagonal(cosines).sum()) / (len(output) - 1)
    return alike


def total_variation(pictures: Tensor) -> Tensor:
    """Return how much neighbouring pixels of ``(N, C, H, W)`` differ: each one's mean, added up."""
    down, right = pictures.diff(dim=2).abs(), pictures.diff(dim=3).abs()
    return down.mean((1, 2, 3)).sum() + right.mean((1, 2, 3)).sum()
