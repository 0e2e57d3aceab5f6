"""Choose how large the input is, and how much of the image it covers."""

import streamlit as st

from hookviz.language.saying import mark, say
from hookviz.settings import settings
from hookviz.types import Model, Preprocess
from hookviz.ui.link import update_link, word
from hookviz.ui.linked_choice import linked_choice

_OWN = mark("as trained")  # for every model, or a link would keep the size of the one before
_SIZES = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)


def pick_input(model: Model) -> tuple[int | None, bool]:
    """Return the input's side in pixels, None for the model's own, and whether to show it whole."""
    if not isinstance(model.preprocess, Preprocess):
        return None, False
    sizes = {_OWN: None} | {
        f"{size} px": size
        for size in _SIZES
        if model.min_size <= size <= settings().max_input and size != model.preprocess.crop
    }
    with st.expander(say("Input size and crop")):
        label = say("Input size (trained on {crop} px)", crop=model.preprocess.crop)
        size = linked_choice(st.selectbox, label, list(sizes), "size", first=_OWN) or _OWN
        st.session_state["whole"] = word("whole") == "true"
        whole = st.toggle(
            say("Whole image"),
            key="whole",
            on_change=lambda: update_link(whole="true" if st.session_state["whole"] else None),
            help=say("Models are trained on the centre of an image. This shows them all of it."),
        )
    return sizes[size], whole
