"""Hold a map of numbers over an image, and draw it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.drawing.colormaps import coloured
from hookviz.drawing.figures import check_dpi, new_figure, readable, width_in_points
from hookviz.drawing.grid import grid_of_any
from hookviz.drawing.overlay import color_limit, over_image
from hookviz.drawing.pictures import encode_png
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.types import InputImage, ModelInput, Pixels
from hookviz.wording import times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEXT_PT = 7.0


@dataclass(frozen=True, eq=False, slots=True)
class Heatmap:
    """Map of how much each part of an input counts, and its picture on the image.

    Attributes:
        values: the map, ``(H, W)`` of the layer or of the input; of sound, a volume or a clip with
            every axis but the channels.
        signed: what it is made of, with its sign: a class activation map before its ReLU, and of a
            map of pixels the sum over the input's channels.
        title: what it shows, in words.
        chosen: the settings that it was computed with, defaults filled in.
        model_input: what the network got.
        image: the image that it was made from; None where the caller gave a tensor.
        is_signed: whether `values` below zero have a meaning.
        percentile: of ``|values|``, which has the end colour.
        attribution: of a map of pixels the same before the input's channels were put together,
            ``(C, H, W)``; else None.
    """

    values: NDArray[np.floating[Any]] = field(repr=False)
    signed: NDArray[np.floating[Any]] = field(repr=False)
    title: str
    chosen: Mapping[str, Any] = field(repr=False)
    model_input: ModelInput = field(repr=False)
    image: InputImage | None = field(default=None, repr=False)
    is_signed: bool = False
    percentile: float = 100
    attribution: NDArray[np.floating[Any]] | None = field(default=None, repr=False)

    @property
    def colormap(self) -> str:
        """``"RdBu_r"`` where numbers below zero have a meaning, else ``"inferno"``."""
        return "RdBu_r" if self.is_signed else "inferno"

    @property
    def limits(self) -> tuple[float, float]:
        """Values of the end colours: 0, or as far below zero as above."""
        end = color_limit(self.values, self.percentile)
        return (-end if self.is_signed else 0.0), end

    def overlay(self, *, opacity: float = 0.6) -> Image.Image:
        """Lay the map over the image, cell by cell, where the network saw it.

        Args:
            opacity: of the map, 0…1.

        Returns:
            RGB, 640 pixels along its longer side.

        Raises:
            HookVizError: the input is no image.
            SettingError: `opacity` is not from 0 to 1.
        """
        return Image.fromarray(self._on_image(opacity))

    def figure(self, *, width_cm: float = 8.5, opacity: float = 0.6, dpi: int = 300) -> "Figure":
        """Draw the overlay with its title and a colour bar, `width_cm` wide.

        Of sound, a volume or a clip it is the map alone, as `Grid.figure` draws it.

        Raises:
            SettingError: `width_cm` is not from 6 to 60, `dpi` not from 50 to 600, or `opacity` not
                from 0 to 1.
        """
        from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - see `figures.new_figure`
        from matplotlib.colors import Normalize  # noqa: PLC0415

        check_dpi(dpi)
        if self.values.ndim != 2:
            return grid_of_any(self.values[None], title=self.title).figure(dpi=dpi)
        picture = self._on_image(opacity)
        width = width_in_points(width_cm) / 72
        height = width * 0.85 * picture.shape[0] / picture.shape[1] + 0.3
        figure = new_figure(figsize=(width, height), dpi=dpi, layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(picture, interpolation="none")
        axes.set_axis_off()
        axes.set_title(self.title, fontsize=_TEXT_PT, wrap=True)
        scale = ScalarMappable(Normalize(*self.limits), self.colormap)
        bar = figure.colorbar(scale, ax=axes, fraction=0.05, pad=0.02)
        bar.ax.tick_params(labelsize=_TEXT_PT)
        return readable(figure)

    def _on_image(self, opacity: float) -> Pixels:
        if self.values.ndim != 2:
            raise HookVizError(
                say(
                    "The map has {shape} values and the input no rows and columns to lay it over; "
                    "`figure` draws it alone.",
                    shape=times(self.values.shape),
                )
            )
        low, high = self.limits
        colours = coloured(self.values, self.colormap, low=low, high=high)
        return over_image(self.model_input, self.image, colours, opacity=opacity)

    def _repr_png_(self) -> bytes | None:
        """Return the overlay as PNG, for a notebook."""
        return encode_png(self._on_image(0.6)) if self.values.ndim == 2 else None
