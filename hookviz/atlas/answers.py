"""Dataclasses that an `Atlas` answers with: images, top activations, statistics, channels."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.histograms import edges
from hookviz.types import Pixels


@dataclass(frozen=True, slots=True)
class AtlasImage:
    """Image that is among the strongest of some channel.

    Attributes:
        name: its path from the folder that the atlas was made of, or what it was called.
        digest: of its pixels, as `InputImage.digest`; of an input's numbers where one was given.
        category: its class; empty where the atlas has no classes.
        height, width: in pixels; 0 where it had no pixels, or was gone when patches were cut.
        path: its path from the folder that the atlas lies in, as the file says; empty where it lay
            elsewhere. `Atlas.picture` says whether it is there.
    """

    name: str
    digest: str
    category: str
    height: int
    width: int
    path: str = field(default="", repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class TopActivation:
    """One of a channel's strongest activations: its image, value, cell and patch.

    Attributes:
        image: which image.
        value: the activation.
        cell: row and column in the channel's map.
        box: what the cell sees, as top, left, bottom and right in pixels of the original image, the
            last row and column not included; None where that is not known.
        patch: that part of the image, RGB uint8 ``(h, w, 3)``, shrunk; None where there is none.
    """

    image: AtlasImage
    value: float
    cell: tuple[int, int]
    box: tuple[int, int, int, int] | None
    patch: Pixels | None = field(repr=False)


@dataclass(frozen=True, eq=False, slots=True)
class LayerStatistics:
    """Statistics of what a layer's channels put out over all images of the atlas.

    Attributes:
        mean: of all finite values, float64 ``(C,)``.
        mean_maximum: the mean over the images of each image's largest value, float64 ``(C,)``.
        zeros: share of values that are 0, among up to 9 cells of each map, float64 ``(C,)``.
        strongest: share of the images for which the channel's largest value is the layer's, float64
            ``(C,)``.
        not_finite: how many values were NaN or infinite, int64 ``(C,)``.
        histogram: counts of the values of those cells, uint32 ``(C, bins)``.
        class_maximum: as `mean_maximum` for the images of each class, float32 ``(classes, C)``.
        widths: of the bins of each channel, float64 ``(C,)``; as many are below 0 as above.
    """

    mean: NDArray[np.float64]
    mean_maximum: NDArray[np.float64]
    zeros: NDArray[np.float64]
    strongest: NDArray[np.float64]
    not_finite: NDArray[np.int64]
    histogram: NDArray[np.uint32]
    class_maximum: NDArray[np.float32]
    widths: NDArray[np.float64]

    def edges(self, channel: int) -> NDArray[np.float64]:
        """Return the edges of a channel's histogram bins, ``(bins + 1,)``."""
        of_channel: NDArray[np.float64] = edges(0) * self.widths[channel]
        return of_channel


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """Channel that answers to a class or an image.

    Attributes:
        layer: its written address.
        channel: its number.
        rank: of the image among the channel's strongest, from 0; for a class of the first that is
            of it.
        share: for a class, the share of the channel's strongest images that are of it; for an image
            1.0.
        value: the activation that the rank is of.
        contrast: for a class, how far its mean maximum is above that of all images, as a share of
            the spread of the classes' (a z-score); 0.0 for an image.
    """

    layer: str
    channel: int
    rank: int
    share: float
    value: float
    contrast: float = 0.0
