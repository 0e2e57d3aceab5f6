"""Hold one channel's maps of several images, and draw them in the same colours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.colormaps import COLORMAPS, Colormap
from hookviz.drawing.maps_page import maps_figure
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
