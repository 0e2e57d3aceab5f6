"""The button that keeps what is on the screen, to hold whatever is looked at next against it."""

import streamlit as st

from hookviz.language.saying import say
from hookviz.ui.explorer.channels import Drawing, Scene
from hookviz.ui.explorer.pinned_view import pin


def offer_pin(drawing: Drawing, scene: Scene) -> None:
    """A button that pins the drawing as A, as it is when the button is pressed."""
    st.button(
        say("Compare"),
        icon=":material/compare:",
        on_click=_pin,
        args=(drawing, scene),
        help=say("Keep this as A: the image, model or layer that you choose next is B"),
        key="hv-pin",
        disabled=drawing.grid is None,
    )


def _pin(drawing: Drawing, scene: Scene) -> None:
    if drawing.grid is not None and drawing.grid.address is not None:
        address = drawing.grid.address
        pin(scene.shown, scene.choice, address, size=scene.size, whole=scene.whole)
