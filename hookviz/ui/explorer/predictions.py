"""The page's first row: what the model sees of the image, and which classes it says that it is."""

from html import escape

import streamlit as st

from hookviz.models import catalog
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.state import Shown

_SIDE = 76  # pixels


def show_input(model_input: ModelInput, shown: Shown) -> None:
    """The image as the model sees it, small; its sizes are told on hover of the text beside it."""
    if model_input.picture is not None:
        st.image(model_input.picture, width=_SIDE, alt=f"What the model sees: {shown.alt}")


def show_predictions(capture: Capture, model: Model, shown: Shown) -> None:
    """The five likeliest classes as bars; of random weights they mean nothing, and it says so."""
    if model.weights == "random":
        st.badge(
            "random weights: these predictions mean nothing",
            icon=":material/casino:",
            color="orange",
        )
    if capture.logits is None:
        st.caption("This network puts out no class scores.")
        return
    rows = "".join(
        f'<div class="class"><span class="label">{escape(label)}</span>'
        f'<span class="track"><span class="bar" style="width:{chance:.2%}"></span></span>'
        f'<span class="share">{_percent(chance)}</span></div>'
        for label, chance in capture.predictions(5)
    )
    st.html(f'<div class="hv-classes" title="{escape(_about(capture, shown))}">{rows}</div>')
    if model.name == catalog.BUNDLED:
        st.caption("it knows drawings alone")


def _about(capture: Capture, shown: Shown) -> str:
    picture = capture.model_input.picture
    if picture is None:
        return "The five likeliest classes"
    height, width = picture.shape[:2]
    return (
        "The five likeliest classes, by the softmax of the scores. The model sees "
        f"{width}×{height} of {shown.image.width:,}×{shown.image.height:,} pixels."
    )


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %") if share >= 0.001 else "&lt; 0.1 %"
