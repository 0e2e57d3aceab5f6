"""The picture on the screen as a script to copy."""

import streamlit as st

from hookviz.models import bundled, catalog
from hookviz.types import Model
from hookviz.ui.state import Shown


def show_code(code: str, shown: Shown, model: Model) -> None:
    """The picture as a script to copy, and the files of ours that it reads."""
    with st.popover("Copy as code", icon=":material/code:", width="content"):
        st.caption(
            "This draws the same picture without HookViz, pixel for pixel: run it in a folder "
            "that has the image, and the weights if they are no download."
        )
        st.code(code, "python", height=420)
        with st.container(horizontal=True):
            st.download_button(
                "The script", code, "hookviz_picture.py", "text/x-python", on_click="ignore"
            )
            if shown.file is not None:
                st.download_button(
                    "The image",
                    shown.file.read_bytes,
                    shown.file.name,
                    "image/jpeg",
                    on_click="ignore",
                )
            if model.name == catalog.BUNDLED and model.weights == "pretrained":
                st.download_button(
                    "The weights",
                    bundled.WEIGHTS_FILE.read_bytes,
                    bundled.WEIGHTS_FILE.name,
                    "application/octet-stream",
                    on_click="ignore",
                )
