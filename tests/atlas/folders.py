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
from tests.networks import Tiny
from tests.pictures import picture
from tests.plain_hooks import every_output


class Mixing(Tiny):
    """A network that takes the mean over its images off each of them."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean(0, keepdim=True) * 0.5)


class Folding(Tiny):
    """A network that lays its images one below the other."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.reshape(1, 3, -1, images.shape[-1]))


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
    passes = [
        every_output(model.network, hookviz.prepare_input(model, path).tensor) for path in paths
    ]
    modules = model.network.named_modules()
    convs = [name for name, module in modules if isinstance(module, nn.Conv2d)]
    return {name: torch.cat([each[name][0] for each in passes]).numpy() for name in convs}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


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
