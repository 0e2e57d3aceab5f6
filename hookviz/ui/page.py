"""The page: choices at the side, the model's view and its channels in the middle."""

import io
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.survey import survey_input
from hookviz.drawing.grid import make_grid
from hookviz.errors import HookVizError
from hookviz.explaining.layer_facts import facts as layer_facts
from hookviz.lenses.contract.lens import Lens
from hookviz.models import timm_models
from hookviz.serving import out_of_memory
from hookviz.types import Address, LayerInfo, Model, ModelInput
from hookviz.ui.explorer.channels import Drawing, Scene, show_channels
from hookviz.ui.explorer.grid_files import show_downloads
from hookviz.ui.explorer.layer_capture import capture_layer
from hookviz.ui.explorer.layer_choice import pick_list
from hookviz.ui.explorer.layer_header import show_layer
from hookviz.ui.explorer.layer_tree import show_tree
from hookviz.ui.explorer.predictions import show_input, show_predictions
from hookviz.ui.explorer.recipe_code import show_code, show_lens_code
from hookviz.ui.explorer.share import show_share
from hookviz.ui.explorer.view_choice import pick_view, settled
from hookviz.ui.glossary import marked
from hookviz.ui.lenses.lens_choice import layers_for, pick_lens, start_at
from hookviz.ui.lenses.lens_run import show_lens
from hookviz.ui.live.frozen_frame import offer_way_back
from hookviz.ui.live.stream_view import is_live, leave, say_no_lens, show_stream
from hookviz.ui.serving import resources, visitor_bounds
from hookviz.ui.serving.login import let_in
from hookviz.ui.sidebar.image_choice import ask_for_image, pick_image
from hookviz.ui.sidebar.input_choice import pick_input
from hookviz.ui.sidebar.model_choice import pick_model
from hookviz.ui.sidebar.weights_download import may_load, wait_for_weights
from hookviz.ui.state import ModelChoice, Shown, plain
from hookviz.ui.theme import head

_SIDEBAR = 300  # pixels


def show() -> None:
    """Draw the page once."""
    st.set_page_config("HookViz", _icon(), layout="wide", initial_sidebar_state=_SIDEBAR)
    with st.container(key="hv-head"):
        st.html(head(), unsafe_allow_javascript=True)
    with st.sidebar:
        st.title("HookViz", anchor=False)
    try:
        with out_of_memory.told("Drawing this page"):
            _show()
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _show() -> None:
    """All of the page, for those who may come in."""
    if not let_in():
        return
    with st.sidebar:
        shown = pick_image()
        refusal = visitor_bounds.refusal()
        if refusal:
            st.error(plain(refusal), icon=":material/upload_file:")
        if not is_live():
            leave()
        choice = pick_model()
    if shown is None:
        ask_for_image()
        return
    spec, pretrained = choice.spec, choice.weights == "pretrained"
    if pretrained and spec.download_bytes and not spec.on_disk:
        wait_for_weights(spec)
    elif pretrained and spec.name.startswith(timm_models.PREFIX) and not may_load(spec):
        return
    elif choice.weights == "yours" and choice.checkpoint is None:
        st.info(
            f"Upload weights for {choice.spec.title} in the sidebar: a safetensors file, or a "
            "state dict saved by torch.save.",
            icon=":material/upload:",
        )
    else:
        _show_model(shown, choice)


@cache
def _icon() -> Image.Image:
    """The page's icon: nine channels of a tiny grid."""
    values = np.arange(9, dtype=np.float32)[::-1].reshape(9, 1, 1)
    with Image.open(io.BytesIO(make_grid(values, aspect=1, width=64).png())) as icon:
        return icon.convert("RGBA")


def _show_model(shown: Shown, choice: ModelChoice) -> None:
    """The model loaded, and in use until the page is drawn."""
    loading = partial(st.spinner, f"Loading {choice.spec.title}…")
    with resources.use_model(choice, loading) as model:
        _show_network(shown, choice, model)


def _show_network(shown: Shown, choice: ModelChoice, model: Model) -> None:
    """Everything below the choice of a model, in the order in which it is needed."""
    header = st.container(
        horizontal=True, vertical_alignment="center", key="hv-header", gap="small"
    )
    with st.sidebar:
        lens_slot, list_slot, tree_slot, input_slot = (st.container() for _ in range(4))
    with input_slot:  # last on the screen, and needed first
        size, whole = pick_input(model)
    live = is_live()
    with lens_slot:
        lens = None if live else pick_lens()
        if live:
            say_no_lens()
    place = _pick_place(shown, model, lens, list_slot, size=size, whole=whole)
    if live:
        view = pick_view(place.layer.output_shape[0])
        show_stream(model, choice, place.step, view, settled(view), size=size, whole=whole)
        with tree_slot:
            show_tree(model, place.model_input, place.layers, place.layer, place.listed)
        return
    capture = capture_layer(model, place.model_input, place.step.layer)
    with header:
        show_input(place.model_input, shown)
        with st.container(width="stretch"):
            show_predictions(capture, model, shown)
        offer_way_back()
        file_slot = st.container(horizontal=True, width="content")
    if lens is not None:
        result = show_lens(lens, model, place.model_input, shown, place.layer)
        with tree_slot:  # after all else: a network that is seen first takes a while
            show_tree(model, place.model_input, place.layers, place.layer, place.listed)
        with file_slot:
            if result is not None:
                shape = tuple(place.model_input.tensor.shape[1:])
                show_lens_code(result, shown, model, shape=shape, size=size, whole=whole)
            show_share(shown)
        return
    scene = Scene(shown, choice, place.model_input, size, whole, place.layer, place.step, capture)
    drawing = show_channels(scene)
    if drawing is None:
        return
    with file_slot:
        _show_files(scene, drawing, model)
    with tree_slot:
        fields = show_tree(model, place.model_input, place.layers, place.layer, place.listed)
    facts = layer_facts(place.layer, fields.get(place.layer.name))
    kind = "conv layer" if place.listed == "conv" else "layer"
    drawing.say(marked(f"{kind} {place.layer.index + 1} of {len(place.layers)} · {facts}"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one looks in a network, as chosen.

    Attributes:
        model_input: what the network is given.
        layers: those on offer, in order of execution.
        listed: which list they are, one of `LISTS`; None where a lens chose them.
        layer: the one that is looked at.
        step: whose output is shown: the layer's own, or that of a step after it.
    """

    model_input: ModelInput
    layers: tuple[LayerInfo, ...]
    listed: str | None
    layer: LayerInfo
    step: Address


def _pick_place(
    shown: Shown,
    model: Model,
    lens: Lens | None,
    list_slot: DeltaGenerator,
    *,
    size: int | None,
    whole: bool,
) -> _Place:
    """The network's layers read, and the one picked that is looked at."""
    read = (model.digest, shown.image.digest, size, whole)
    known = st.session_state.get("_read") == read  # a spinner starts a thread
    with nullcontext() if known else st.spinner("Reading the network…"):
        model_input = resources.prepare(model, shown.image, size=size, whole=whole)
        surveyed = survey_input(model, model_input)
    st.session_state["_read"] = read
    start_at(lens, model, surveyed)
    listed = None
    if lens is not None:
        # a lens that needs a conv layer says so itself
        layers = layers_for(lens, surveyed) or surveyed.layers
    else:
        with list_slot:
            listed = pick_list(surveyed)
        layers = surveyed.convs if listed == "conv" else surveyed.maps
    if not layers:
        raise HookVizError(
            f"{model.title} runs no layer whose channels could be shown. Lenses such as Step by "
            "step and Summary look at its other layers."
            if surveyed.layers
            else f"{model.title} runs no layer to look at."
        )
    layer, step = show_layer(layers, surveyed, listed)
    return _Place(model_input, layers, listed, layer, step)


def _show_files(scene: Scene, drawing: Drawing, model: Model) -> None:
    """What can be kept of the drawing and handed on."""
    show_downloads(drawing, scene.capture, model)
    show_code(drawing, scene.shown, model)
    show_share(scene.shown)
