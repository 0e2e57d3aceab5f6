"""Images as a row of thumbnails, one of them chosen."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st
from PIL import Image

from hookviz.ui.components.files import data_url, packed, script, source

_SIDE = 96  # pixels, twice what a thumbnail takes on the screen
_QUALITY = 85


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image to choose.

    Attributes:
        name: which one it is, for the program.
        title: which one it is, for people.
        picture: what it looks like, as by `thumbnail`.
    """

    name: str
    title: str
    picture: str


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_gallery", css=source("gallery.css"), js=script("gallery.js")
    )


def thumbnail(picture: Image.Image) -> str:
    """The middle square of an RGB picture, small, as a URL."""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    small = picture.resize((_SIDE, _SIDE), box=(left, top, left + side, top + side))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY)
    return data_url(buffer.getvalue(), "jpeg")


def gallery(
    key: str,
    label: str,
    thumbnails: Sequence[Thumbnail],
    chosen: str | None,
    on_pick: Callable[[str], None],
) -> None:
    """Show the thumbnails; `on_pick` gets the name of the one that a person chooses.

    Args:
        key: of the component in Streamlit's state.
        label: what the group is called to those who do not see it.
        thumbnails: in the order in which they stand.
        chosen: the name of the one that is marked, if any.
        on_pick: called before the next run of the page.
    """

    def picked() -> None:
        name = st.session_state[key].get("picked")
        if name in {each.name for each in thumbnails}:
            on_pick(name)

    _component()(
        key=key,
        data=packed(
            {
                "label": label,
                "chosen": chosen,
                "items": [
                    {"name": each.name, "title": each.title, "picture": each.picture}
                    for each in thumbnails
                ],
            }
        ),
        on_picked_change=picked,
    )
