"""How large the input is, and how much of the image it covers."""

import streamlit as st

from hookviz.settings import settings
from hookviz.types import Model, Preprocess

_OWN = "as trained"  # for every model, or a link would keep the size of the one before
_SIZES = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)


def pick_input(model: Model) -> tuple[int | None, bool]:
    """Side of the input in pixels, None for the model's own; and whether to show all of it."""
    if not isinstance(model.preprocess, Preprocess):
        return None, False
    sizes = {_OWN: None} | {
        f"{size} px": size
        for size in _SIZES
        if model.min_size <= size <= settings().max_input and size != model.preprocess.crop
    }
    with st.expander("Input size and crop"):
        label = f"Input size (trained on {model.preprocess.crop} px)"
        size = st.selectbox(label, list(sizes), key="size", bind="query-params")
        whole = st.toggle(
            "Whole image",
            key="whole",
            bind="query-params",
            help="Models are trained on the centre of an image. This shows them all of it.",
        )
    return sizes[size], whole
