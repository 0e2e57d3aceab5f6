"""Maps of several images side by side, each beside its picture; one can lead to that image."""

import io
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import streamlit as st
from PIL import Image

from hookviz.drawing.maps_panel import MapsPanel
from hookviz.types import Pixels
from hookviz.ui.components.files import data_url, packed, script, source

_SIDE = 160  # pixels of the pictures, twice what they take on the screen
_QUALITY = 85


@cache
def _component() -> Any:
    return st.components.v2.component("hookviz_maps", css=source("maps.css"), js=script("maps.js"))


def show_maps(
    panel: MapsPanel, key: str, leading: Collection[int], on_pick: Callable[[int], None]
) -> None:
    """Show the maps; `on_pick` gets the position of the one clicked, of `leading`."""

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case int(position) if position in leading:
                on_pick(position)

    _component()(
        key=key,
        data=packed(
            {
                "label": panel.title,
                "maps": [
                    {
                        "name": each.name,
                        "says": each.says,
                        "image": _small(each.picture),
                        "map": _cells(each.colours),
                        "leads": position in leading,
                    }
                    for position, each in enumerate(panel.maps)
                ],
            }
        ),
        on_picked_change=picked,
    )


def _small(picture: Pixels) -> str:
    """A picture, small, as a URL."""
    small = Image.fromarray(picture)
    small.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    small.save(file, "JPEG", quality=_QUALITY)
    return data_url(file.getvalue(), "jpeg")


def _cells(colours: Pixels) -> str:
    """A map with a pixel for every cell as a URL, exactly."""
    file = io.BytesIO()
    Image.fromarray(colours).save(file, "PNG")
    return data_url(file.getvalue())
