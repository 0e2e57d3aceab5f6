"""Show maps of several images side by side, each beside its picture; some lead to their image."""

from collections.abc import Callable, Collection

import numpy as np
from PIL import Image

from hookviz.drawing.maps_panel import MapsPanel
from hookviz.drawing.pictures import encode_jpeg, encode_png
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import mount

_SIDE = 160  # pixels of the pictures, twice what they take on the screen
_QUALITY = 85


def show_maps(
    panel: MapsPanel, key: str, leading: Collection[int], on_pick: Callable[[int], None]
) -> None:
    """Show the maps; `on_pick` gets the position of the one clicked, of `leading`."""

    def picked(sent: object) -> None:
        match sent:
            case int(position) if position in leading:
                on_pick(position)

    maps = [
        {
            "name": each.name,
            "says": each.says,
            "image": _small(each.picture),
            "map": data_url(encode_png(each.colours)),  # a pixel for every cell
            "leads": position in leading,
        }
        for position, each in enumerate(panel.maps)
    ]
    mount("maps", key, {"label": panel.title, "maps": maps}, picked=picked)


def _small(picture: Pixels) -> str:
    """Return a picture, no longer than `_SIDE`, as a data URL."""
    small = Image.fromarray(picture)
    small.thumbnail((_SIDE, _SIDE))
    return data_url(encode_jpeg(np.asarray(small), quality=_QUALITY), "jpeg")
