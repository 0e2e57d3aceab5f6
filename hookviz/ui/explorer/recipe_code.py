"""The picture on the screen as a script to copy."""

from functools import partial
from pathlib import Path

import streamlit as st

from hookviz.models.bundled import BUNDLED
from hookviz.recipe.script import Recipe, script
from hookviz.types import Model
from hookviz.ui.explorer.menu import menu
from hookviz.ui.state import Shown


def show_code(recipe: Recipe, shown: Shown, model: Model) -> None:
    """A menu with the picture as a script to copy, and the files of ours that it reads."""
    shipped = BUNDLED.get(model.name) if model.weights == "pretrained" else None
    fill = partial(_show_script, recipe, shown.file, shipped.weights_file if shipped else None)
    menu("Copy as code", "code", "code", fill)


def _show_script(recipe: Recipe, image_file: Path | None, weights_file: Path | None) -> None:
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
        for label, file, mime in (
            ("The image", image_file, "image/jpeg"),
            ("The weights", weights_file, "application/octet-stream"),
        ):
            if file is not None:
                st.download_button(label, file.read_bytes, file.name, mime, on_click="ignore")
