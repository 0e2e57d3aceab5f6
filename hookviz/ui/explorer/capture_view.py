"""The main part of the page: what the model sees, what it says, and the channels of one layer."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.export import npz
from hookviz.drawing.grid import Grid
from hookviz.models import bundled, catalog
from hookviz.types import Capture, LayerInfo, Model
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.explorer.inspector import chosen_channel
from hookviz.ui.state import Shown, choose_channel, plain


def show_input(capture: Capture, shown: Shown) -> None:
    """The image as the model sees it, with the part of the original that it covers."""
    made = capture.model_input
    if made.picture is None:
        return
    height, width = made.picture.shape[:2]
    st.image(made.picture, width="stretch", alt=f"What the model sees: {shown.alt}")
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


def show_layer(layer: LayerInfo, layers: Sequence[LayerInfo]) -> DeltaGenerator:
    """The layer's name and the way to its neighbours; a place for its facts."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(plain(layer.name), anchor=False, width="stretch")
        _step("Previous", "chevron_left", "P", layers, layer.index - 1)
        _step("Next", "chevron_right", "N", layers, layer.index + 1)
    facts = st.empty()
    stages = tuple(dict.fromkeys(each.stage for each in layers))
    st.session_state["stage"] = layer.stage
    st.segmented_control(
        "Part of the network",
        stages,
        format_func=plain,  # it takes Markdown
        key="stage",
        required=True,
        on_change=lambda: _go_to(
            next(each.name for each in layers if each.stage == st.session_state["stage"])
        ),
        label_visibility="collapsed",
    )
    return facts


def _step(label: str, icon: str, key: str, layers: Sequence[LayerInfo], index: int) -> None:
    there = 0 <= index < len(layers)
    st.button(
        label,
        icon=f":material/{icon}:",
        shortcut=key,
        disabled=not there,
        help=f"{label} layer: {plain(layers[index].name)}" if there else None,
        on_click=_go_to,
        args=(layers[index].name if there else "",),
    )


def _go_to(layer: str) -> None:
    st.session_state["layer"] = layer


def show_grid(grid: Grid, shown: Shown) -> None:
    """Every channel, and one sentence that says what the colours mean."""
    alt = f"{grid.shown} of layer {grid.title} for: {shown.alt}. {grid.legend}"
    mosaic(grid, alt, chosen_channel(grid), choose_channel)
    st.caption(plain(f"{grid.legend} {grid.shown[0].upper()}{grid.shown[1:]}."))


def show_downloads(grid: Grid, capture: Capture, model: Model) -> None:
    """The grid, the figure for print and the numbers themselves, made when asked for."""
    stem = f"{model.name}-{grid.title}"
    title = f"{model.title} · {grid.title}"
    files: list[tuple[str, Callable[[], bytes], str, str]] = [
        ("Grid as PNG", grid.png, f"{stem}.png", "image/png"),
        (
            "Figure as PNG",
            partial(grid.figure_bytes, "png", title=title),
            f"{stem}-figure.png",
            "image/png",
        ),
        (
            "Figure as PDF",
            partial(grid.figure_bytes, "pdf", title=title),
            f"{stem}-figure.pdf",
            "application/pdf",
        ),
        (
            "Activations as NPZ",
            partial(npz, capture),
            f"{stem}.npz",
            "application/octet-stream",
        ),
    ]
    with st.popover("Download", icon=":material/download:"):
        for label, make, file_name, mime in files:
            st.download_button(
                label, make, file_name, mime, key=label, on_click="ignore", width="stretch"
            )


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
