"""What the model sees of the image, and which classes it says that it is."""

from html import escape

import streamlit as st

from hookviz.models import catalog
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.state import Shown


def show_input(model_input: ModelInput, shown: Shown) -> None:
    """The image as the model sees it, with the part of the original that it covers."""
    if model_input.picture is None:
        return
    height, width = model_input.picture.shape[:2]
    st.image(model_input.picture, width="stretch", alt=f"What the model sees: {shown.alt}")
    st.caption(
        f"what the model sees: {width}×{height} "
        f"of {shown.image.width:,}×{shown.image.height:,} pixels"
    )


def show_predictions(capture: Capture, model: Model) -> None:
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
    knows = " · it knows drawings alone" if model.name == catalog.BUNDLED else ""
    st.caption(f"top 5 of what it says{knows}")
    rows = "".join(
        f"<span>{escape(label)}</span>"
        f'<span><span class="bar" style="width:{chance:.2%}"></span></span>'
        f'<span class="share">{_percent(chance)}</span>'
        for label, chance in capture.predictions(5)
    )
    st.html(f'<div class="hv-predictions">{rows}</div>')


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %") if share >= 0.001 else "&lt; 0.1 %"
