"""The picture on the screen as a script to copy."""

from pathlib import Path

import streamlit as st

from hookviz.models.bundled import BUNDLED
from hookviz.recipe.script import Recipe, script
from hookviz.types import Model
from hookviz.ui.state import Shown


def show_code(recipe: Recipe, shown: Shown, model: Model) -> None:
    """The picture as a script to copy, and the files of ours that it reads."""
    shipped = BUNDLED.get(model.name) if model.weights == "pretrained" else None
    # not the model itself: what a fragment is given stays in memory until the page runs again
    with st.container(width="content"):  # a fragment by itself is as wide as it can be
        _show_popover(recipe, shown.file, shipped.weights_file if shipped else None)


@st.fragment
def _show_popover(recipe: Recipe, image_file: Path | None, weights_file: Path | None) -> None:
    """The button, and what it opens; the script is written only then, and nothing else runs."""
    with st.popover(
        "Copy as code", icon=":material/code:", width="content", on_change="rerun", key="code"
    ) as popover:
        if not popover.open:
            return
        st.caption(
            "This draws the same picture without HookViz, pixel for pixel: run it in a folder "
            "that has the image, and the weights if they are no download."
        )
        code = script(recipe)
        st.code(code, "python", height=420)
        with st.container(horizontal=True):
            st.download_button(
                "The script", code, "hookviz_picture.py", "text/x-python", on_click="ignore"
            )
            if image_file is not None:
                st.download_button(
                    "The image",
                    image_file.read_bytes,
                    image_file.name,
                    "image/jpeg",
                    on_click="ignore",
                )
            if weights_file is not None:
                st.download_button(
                    "The weights",
                    weights_file.read_bytes,
                    weights_file.name,
                    "application/octet-stream",
                    on_click="ignore",
                )
