"""Hold a channel's maps of several images, and compare channels inside and outside of a region."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import COLORMAPS, Colormap
from hookviz.drawing.comparison_pages import maps_figure
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.types import ModelInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Map = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ChannelMaps:
    """Maps of one channel of a layer, one for each of several images.

    Attributes:
        layer: the layer's name.
        channel: its number.
        names: of the images: the first one, then the others by their highest value.
        maps: float32 ``(H, W)`` of each; they can differ in size.
        inputs: what the network got of each.
        digests: of each image file; empty where it was a tensor.
        left_out: why an image has no map, by its name.
    """

    layer: str
    channel: int
    names: tuple[str, ...]
    maps: tuple[Map, ...] = field(repr=False)
    inputs: tuple[ModelInput, ...] = field(repr=False)
    digests: tuple[str, ...] = field(repr=False)
    left_out: Mapping[str, HookVizError] = field(repr=False)

    @property
    def title(self) -> str:
        """What the maps are of, in words."""
        return say("Channel {channel} of {layer}", channel=self.channel, layer=self.layer)

    @property
    def has_one_size(self) -> bool:
        """Whether all maps have the same shape."""
        return len({values.shape for values in self.maps}) == 1

    @property
    def highest(self) -> Map:
        """Highest finite value of each map, ``(N,)``; NaN without any."""
        return np.array([*map(highest_of, self.maps)], np.float32)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the finite values of each map, ``(N,)``; NaN without any."""
        return np.array([*map(mean_of, self.maps)])

    @property
    def cells(self) -> NDArray[np.int64]:
        """Row and column of each map's highest value, ``(N, 2)``."""
        return np.array([*map(highest_cell, self.maps)])

    @property
    def limits(self) -> tuple[float, float]:
        """Values of the end colours: of all maps, 0 included; symmetric where some are negative."""
        finite = np.concatenate([finite_of(values) for values in self.maps])
        low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
        return (-max(-low, high), max(-low, high)) if low < 0 else (low, high)

    @property
    def colormap(self) -> Colormap:
        """Diverging where some values are negative."""
        return COLORMAPS["RdBu_r" if self.limits[0] < 0 else "viridis"]

    def figure(self) -> "Figure":
        """Draw the maps row by row with the images' names, and one colour bar."""
        return maps_figure(
            dict(zip(self.names, self.maps, strict=True)),
            colormap=self.colormap.name,
            limits=self.limits,
            title=self.title,
        )


def finite_of(values: Map) -> Map:
    """Return the finite values, ``(n,)``."""
    return values[np.isfinite(values)]


def highest_of(values: Map) -> float:
    """Return the highest finite value; NaN without any."""
    return float(finite_of(values).max(initial=-np.inf)) if finite_of(values).size else np.nan


def mean_of(values: Map) -> float:
    """Return the mean of the finite values; NaN without any."""
    finite = finite_of(values)
    return float(finite.mean(dtype=np.float64)) if finite.size else np.nan


def highest_cell(values: Map) -> tuple[int, int]:
    """Return row and column of the highest finite value, the first of equal ones."""
    whole = np.where(np.isfinite(values), values, -np.inf)
    row, column = divmod(int(whole.argmax()), values.shape[1])
    return row, column


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegionSelectivity:
    """How much more each channel of a layer answers inside of a region than outside.

    Formulas are at the lens, `hookviz.lenses.responds_here.run`. A channel without finite values on
    either side has NaN.

    Attributes:
        layer: the layer's name.
        maps: its output, float32 ``(C, H, W)``.
        weights: share of each cell that is marked, 0…1, float64 ``(H, W)``.
        inside: mean of each channel inside, float64 ``(C,)``.
        outside: likewise outside, ``(C,)``.
        deviation: standard deviation of each channel, ``(C,)``.
        score: ``(inside − outside) / deviation``, ``(C,)``; 0 where every cell has one value.
    """

    layer: str
    maps: NDArray[np.float32] = field(repr=False)
    weights: Floats = field(repr=False)
    inside: Floats = field(repr=False)
    outside: Floats = field(repr=False)
    deviation: Floats = field(repr=False)
    score: Floats = field(repr=False)

    @cached_property
    def ranking(self) -> NDArray[np.intp]:
        """Channels that have a score, the highest first; equal ones by number."""
        return highest_first(self.score)

    def grid(self, channels: Sequence[int]) -> Grid:
        """Draw the maps of some channels in that order, in the colours of the whole layer."""
        scale = "symmetric" if np.nanmin(self.maps) < 0 else "layer"
        grid = make_grid(self.maps, scale=scale, title=self.layer)
        return with_channels(grid, self.maps, channels)

    def figure(self, top: int = 16) -> "Figure":
        """Draw the maps of the `top` channels of the highest score as a page for print."""
        return self.grid(self.ranking[:top].tolist()).figure()


def inside_and_outside(maps: NDArray[np.float32], weights: Floats) -> Floats:
    """Return each channel's mean inside, mean outside, deviation and score, ``(4, C)``.

    The score is the difference of the means in the channel's deviations. A channel without finite
    values on either side has NaN.
    """
    numbers = np.full((4, len(maps)), np.nan)
    for channel, values in enumerate(maps):  # one by one, so that the float64 copies stay small
        finite = np.isfinite(values)
        inner, wide = weights[finite], values[finite].astype(np.float64)
        if inner.sum() > 0 and (1 - inner).sum() > 0:
            inside, outside = np.average(wide, weights=inner), np.average(wide, weights=1 - inner)
            varies = wide.min() < wide.max()  # the mean of equal numbers may be off by a rounding
            deviation = wide.std() if varies else 0.0
            score = (inside - outside) / deviation if deviation > 0 else 0.0
            numbers[:, channel] = inside, outside, deviation, score
    return numbers


def highest_first(score: Floats) -> NDArray[np.intp]:
    """Return the channels that have a score, the highest first, equal ones by number."""
    order = np.argsort(-score, kind="stable")
    return order[np.isfinite(score[order])]
