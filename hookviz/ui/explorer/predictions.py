"""What the model sees of the image, and which classes it says that it is."""

from html import escape

import streamlit as st

from hookviz.images.samples import samples
from hookviz.models.bundled import BUNDLED
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.state import ALL_FAMILIES, Shown, choose


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
    st.caption(f"top 5 of what it says{_KNOWS.get(_image_kind(model), '')}")
    rows = "".join(
        f"<span>{escape(label)}</span>"
        f'<span><span class="bar" style="width:{chance:.2%}"></span></span>'
        f'<span class="share">{_percent(chance)}</span>'
        for label, chance in capture.predictions(5)
    )
    st.html(f'<div class="hv-predictions">{rows}</div>')
    _offer_another(model, shown)


_KNOWS = {"photo": " · it knows photographs", "drawn": " · it knows drawings alone"}


def _image_kind(model: Model) -> str:
    """What a bundled model was trained on; empty for other models."""
    bundled = BUNDLED.get(model.name) if model.weights == "pretrained" else None
    return bundled.image_kind if bundled else ""


def _offer_another(model: Model, shown: Shown) -> None:
    """A button for the bundled model that knows such images as this sample, if this one doesn't."""
    kind = next((sample.kind for sample in samples() if sample.path == shown.file), "")
    if not kind or _image_kind(model) in ("", kind):
        return
    other = next(network for network in BUNDLED.values() if network.image_kind == kind)
    noun = "drawings" if kind == "drawn" else "photographs"
    st.button(
        f"{other.title.partition(' (')[0]} knows {noun}",
        icon=":material/swap_horiz:",
        help=f"Show the same image in {other.title}, which was trained on {other.trained_on}.",
        on_click=choose,
        kwargs={"family": ALL_FAMILIES, "model": other.title, "weights": "pretrained"},
    )


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %") if share >= 0.001 else "&lt; 0.1 %"
