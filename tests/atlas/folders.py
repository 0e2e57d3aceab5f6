"""Folders of pictures, and the top of every channel by plain hooks."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import hookviz
from hookviz.atlas.atlas import Atlas
from hookviz.types import Model
from tests.pictures import picture


def save_folder(folder: Path, count: int, *, first: int = 0) -> list[Path]:
    """Pictures of many sizes, no two alike, as ``000.png`` and so on, in a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed in range(first, first + count):
        path = folder / f"{seed:03}.png"
        picture(seed, width=20 + 7 * (seed % 5), height=18 + 5 * (seed % 7)).save(path)
        paths.append(path)
    return paths


def by_plain_hooks(model: Model, paths: list[Path]) -> dict[str, NDArray[np.float32]]:
    """What each conv layer puts out for each image, ``(N, C, H, W)``, one pass an image."""
    kept: dict[str, list[Tensor]] = {}
    handles = [
        module.register_forward_hook(
            lambda _module, _args, output, name=name: kept.setdefault(name, []).append(
                output.detach().clone()
            )
        )
        for name, module in model.network.named_modules()
        if isinstance(module, nn.Conv2d)
    ]
    try:
        with torch.no_grad():
            for path in paths:
                model.network(hookviz.prepare(model, path).tensor.clone())
    finally:
        for handle in handles:
            handle.remove()
    return {name: torch.cat(maps).numpy() for name, maps in kept.items()}


def check_tops(
    atlas: Atlas, names: list[str], maps: Mapping[str, NDArray[np.float32]], near: float
) -> None:
    """Every channel's list is the one that sorting all images gives.

    Values may differ by `near` of the layer's largest; images whose values are nearer to each other
    than that may change places.
    """
    assert set(atlas.layers) == set(maps)
    for layer, values in maps.items():
        flat = values.reshape(*values.shape[:2], -1)
        best, where = flat.max(axis=2), flat.argmax(axis=2)
        slack = near * float(np.abs(flat).max())
        for channel in range(values.shape[1]):
            order = sorted(range(len(names)), key=lambda i: (-best[i, channel], i))[: atlas.top]
            entries = atlas.top_activations(layer, channel)
            assert len(entries) == min(atlas.top, len(names))
            for rank, entry in enumerate(entries):
                image = names.index(entry.image.name)
                expected = best[order[rank], channel]
                assert abs(entry.value - expected) <= slack, (layer, channel, rank)
                if image != order[rank]:
                    assert abs(best[image, channel] - expected) <= slack, (layer, channel, rank)
                row, column = entry.cell
                cell = row * values.shape[3] + column
                if cell != where[image, channel]:
                    assert abs(flat[image, channel, cell] - best[image, channel]) <= slack
