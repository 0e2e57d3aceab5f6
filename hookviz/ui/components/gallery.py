"""The samples as a row of thumbnails, one of them chosen."""

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st
from PIL import Image

from hookviz.images.samples import Sample, samples
from hookviz.ui.components.files import data_url, source

_SIDE = 96  # pixels, twice what a thumbnail takes on the screen


@cache
def _component() -> Any:
    return st.components.v2.component(
        "hookviz_gallery", css=source("gallery.css"), js=source("gallery.js")
    )


@cache
def _thumbnails() -> tuple[str, ...]:
    return tuple(_thumbnail(sample) for sample in samples())


def _thumbnail(sample: Sample) -> str:
    with Image.open(sample.path) as picture:
        small = picture.convert("RGB")
    side = min(small.size)
    left, top = (small.width - side) // 2, (small.height - side) // 2
    small = small.resize((_SIDE, _SIDE), box=(left, top, left + side, top + side))
    buffer = io.BytesIO()
    small.save(buffer, "PNG")
    return data_url(buffer.getvalue())


def gallery(chosen: str, on_pick: Callable[[str], None]) -> None:
    """Show every sample; `on_pick` gets the name of the one that a person chooses."""

    def picked() -> None:
        name = st.session_state["gallery"].get("picked")
        if name in {sample.name for sample in samples()}:
            on_pick(name)

    _component()(
        key="gallery",
        data={
            "chosen": chosen,
            "items": [
                {"name": sample.name, "title": sample.title, "picture": picture}
                for sample, picture in zip(samples(), _thumbnails(), strict=True)
            ],
        },
        on_picked_change=picked,
    )
