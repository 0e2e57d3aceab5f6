"""Lay a map over an image as a panel whose opacity can be chosen."""

from dataclasses import dataclass, field

from hookviz.drawing import overlay
from hookviz.drawing.panels import ImagePanel
from hookviz.types import Crop, InputImage, ModelInput, Pixels

_SIDE = 640


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class OverlayPanel(ImagePanel):
    """A map over a picture, whose opacity one chooses on the page.

    Attributes:
        lower, upper: the picture without the map, and with nothing but the map where there is one,
            RGB uint8 of the same ``(H, W, 3)``.
        opacity: of the map in `picture`, 0…1.
    """

    lower: Pixels = field(repr=False)
    upper: Pixels = field(repr=False)
    opacity: float

    @property
    def picture_bytes(self) -> int:
        """Bytes of memory that the three pictures take."""
        return 3 * self.picture.nbytes


def overlay_panel(
    title: str,
    model_input: ModelInput,
    image: InputImage | None,
    colours: Pixels,
    *,
    alt: str,
    caption: str = "",
    opacity: float = 0.6,
) -> OverlayPanel:
    """Return a coloured map, ``(rows, columns, 3)``, over the original where the network saw it.

    All that are made of one input have the same crop and scale. Where the original or the crop is
    not known, the map lies over all that the network saw.
    """
    if image is None or model_input.crop is None:
        whole = overlay.input_picture(model_input)
        height, width = whole.shape[:2]
        crop = Crop(left=0, top=0, right=width, bottom=height, height=height, width=width)
    else:
        whole, crop = image.pixels, model_input.crop
    lower = overlay.shrunk(whole, _SIDE)
    shown, upper = (
        overlay.laid_over(lower, colours, crop, whole.shape[:2], opacity=share)
        for share in (opacity, 1.0)
    )
    return OverlayPanel(title, shown, alt, caption, lower=lower, upper=upper, opacity=opacity)
