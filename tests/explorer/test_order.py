"""The order in which the client shows channels, against that of `make_grid`, for every sort."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import hookviz
from hookviz.comparing.captures import compare_maps
from hookviz.drawing.statistics import SORTS
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.types import Model
from tests.explorer.asking import ask, pinned, subject_of
from tests.networks import as_model
from tests.node import of_client

CHANNELS = 40
_EACH = """
tops.flatMap((top) => sorts.map((sort) => it.arranged(facts, { sort, top })))
  .map(({ order, stats, limits, shown, geometry }) => (
    { order, mean: stats.mean, low: limits.low, shown, corner: it.inSprite(geometry, 1) }))
"""


class Put(nn.AdaptiveAvgPool2d):  # whose maps have as many cells for any input
    """Puts out the maps that it was given, whatever it gets."""

    def __init__(self, maps: NDArray[np.float32]) -> None:
        super().__init__(maps.shape[1:])
        self.maps = nn.Buffer(torch.from_numpy(maps)[None])

    def forward(self, _: torch.Tensor) -> Any:
        return self.maps.clone()


def network_of(maps: NDArray[np.float32]) -> Model:
    return as_model(nn.Sequential(nn.Conv2d(3, 1, 3), Put(maps)).eval())


def odd_maps(seed: int) -> NDArray[np.float32]:
    """Maps of few values, so that many tie, some with NaN and infinity, some of one value."""
    random = np.random.default_rng(seed)
    maps = random.integers(-2, 3, (CHANNELS, 3, 4)).astype(np.float32)
    maps[random.permutation(CHANNELS)[:8]] = maps[0]
    maps[random.random(maps.shape) < 0.02] = np.nan
    maps[random.random(maps.shape) < 0.01] = np.inf
    maps[random.random(maps.shape) < 0.01] = -np.inf
    maps[random.permutation(CHANNELS)[:3]] = np.nan
    maps[random.permutation(CHANNELS)[:3]] *= np.float32(1 + 2**-23)  # in the last bit
    return maps


@pytest.mark.parametrize("seed", range(3))
def test_the_client_orders_as_the_library_does(seed: int) -> None:
    maps = odd_maps(seed)
    found = ask(subject_of(network_of(maps)), "tiles", View(layer="1", layers="maps"))
    tops, sorts = ["all", "16", "64"], list(SORTS)
    shown = of_client("tiles.js", _EACH, facts=dict(found.facts), tops=tops, sorts=sorts)
    for at, (top, sort) in enumerate((top, sort) for top in tops for sort in sorts):
        grid = hookviz.make_grid(maps, sort=sort, top=None if top == "all" else int(top))
        assert shown[at]["order"] == grid.order.tolist(), (sort, top)
        assert shown[at]["shown"].lower() == f"{grid.shown}."
        plain = hookviz.make_grid(maps)
        left, upper, *_ = plain.sprite_geometry.box(int(grid.order[1]))
        assert shown[at]["corner"] == [left, upper]
        mean = np.array(shown[at]["mean"], float)
        np.testing.assert_allclose(mean, grid.stats.mean[grid.order], rtol=1e-6)


def both(seed: int) -> Subject:
    """Maps beside others of one shape."""
    first, second = (subject_of(network_of(odd_maps(each))) for each in (seed, seed + 1))
    return replace(second, pinned=pinned(first, "1"))


@pytest.mark.parametrize("compared", ["B", "Difference"])
def test_a_pair_is_in_the_order_of_b_or_of_what_changed(compared: str) -> None:
    view = View(layer="1", layers="maps", compared=compared)
    found = ask(both(5), "tiles", view)
    sorts = [*SORTS, "change"]
    shown = of_client("tiles.js", _EACH, facts=dict(found.facts), tops=["16"], sorts=sorts)
    for each, sort in zip(shown, sorts, strict=False):
        if sort != "change":
            grid = hookviz.make_grid(odd_maps(6), sort=sort, top=16)
            assert each["order"] == grid.order.tolist(), sort
    changed = compare_maps(*(torch.from_numpy(odd_maps(seed)) for seed in (5, 6)))
    assert shown[-1]["order"] == changed.most_changed[:16].tolist()
