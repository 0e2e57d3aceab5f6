"""The page: choices at the side, the model's view and its channels in the middle."""

import io
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import streamlit as st
import torch
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.survey import survey_input
from hookviz.drawing.dimensions import as_maps
from hookviz.drawing.grid import Grid, make_grid
from hookviz.errors import HookVizError
from hookviz.explaining.layer_facts import facts as layer_facts
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.lenses.contract.lens import Lens
from hookviz.models import timm_models
from hookviz.recipe.script import recipe_of
from hookviz.types import Address, Capture, LayerInfo, Model, ModelInput
from hookviz.ui.explorer.channel_grid import draw_grid, show_grid
from hookviz.ui.explorer.grid_files import show_downloads
from hookviz.ui.explorer.inspector import chosen_channel, show_inspector
from hookviz.ui.explorer.layer_capture import capture_layer
from hookviz.ui.explorer.layer_choice import pick_list
from hookviz.ui.explorer.layer_header import show_layer
from hookviz.ui.explorer.layer_tree import show_tree
from hookviz.ui.explorer.map_origin import show_origin
from hookviz.ui.explorer.predictions import show_input, show_predictions
from hookviz.ui.explorer.recipe_code import show_code
from hookviz.ui.explorer.share import show_share
from hookviz.ui.explorer.view_choice import pick_view
from hookviz.ui.glossary import marked
from hookviz.ui.lenses.lens_choice import layer_kind, pick_lens, start_at
from hookviz.ui.lenses.lens_run import show_lens
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
        if not let_in():
            return
        with st.sidebar:
            shown = pick_image()
            refusal = visitor_bounds.refusal()
            if refusal:
                st.error(plain(refusal), icon=":material/upload_file:")
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
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")


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
        _show_network(shown, model)


def _show_network(shown: Shown, model: Model) -> None:
    """Everything below the choice of a model, in the order in which it is needed."""
    header = st.container(
        horizontal=True, vertical_alignment="center", key="hv-header", gap="small"
    )
    with st.sidebar:
        lens_slot, list_slot, tree_slot, input_slot = (st.container() for _ in range(4))
    with input_slot:  # last on the screen, and needed first
        size, whole = pick_input(model)
    with lens_slot:
        lens = pick_lens()
    scene = _pick_scene(shown, model, lens, list_slot, size=size, whole=whole)
    capture = capture_layer(model, scene.model_input, scene.step.layer)
    with header:
        show_input(scene.model_input, shown)
        with st.container(width="stretch"):
            show_predictions(capture, model, shown)
        file_slot = st.container(horizontal=True, width="content")
    if lens is not None:
        show_lens(lens, model, scene.model_input, shown, scene.layer)
        with tree_slot:  # after all else: a network that is seen first takes a while
            show_tree(model, scene.model_input, scene.layers, scene.layer, scene.listed)
        with file_slot:
            show_share(shown)
        return
    drawing = _show_channels(scene, capture)
    with file_slot:
        _show_files(scene, drawing)
    with tree_slot:
        fields = show_tree(model, scene.model_input, scene.layers, scene.layer, scene.listed)
    facts = layer_facts(scene.layer, fields.get(scene.layer.name))
    kind = "conv layer" if scene.listed == "conv" else "layer"
    position = f"{kind} {scene.layer.index + 1} of {len(scene.layers)}"
    drawing.facts.caption(marked(f"{position} · {facts}"), unsafe_allow_html=True)
    _show_cost(drawing)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is looked at, as chosen; nothing of it is computed yet but the input.

    Attributes:
        shown: the image.
        model: the network.
        model_input: what the network is given.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        layers: those on offer, in order of execution.
        listed: which list they are, one of `LISTS`; None where a lens chose them.
        layer: the one that is looked at.
        step: whose output is shown: the layer's own, or that of a step after it.
    """

    shown: Shown
    model: Model
    model_input: ModelInput
    size: int | None
    whole: bool
    layers: tuple[LayerInfo, ...]
    listed: str | None
    layer: LayerInfo
    step: Address


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What the middle of the page shows of a scene.

    Attributes:
        capture: the pass that it comes from.
        grid: the channels as drawn.
        channel: the one that is picked up, if any.
        facts: the empty line for what the layer is.
        seconds: how long all of it took to draw.
    """

    capture: Capture
    grid: Grid
    channel: int | None
    facts: DeltaGenerator
    seconds: float


def _pick_scene(
    shown: Shown,
    model: Model,
    lens: Lens | None,
    list_slot: DeltaGenerator,
    *,
    size: int | None,
    whole: bool,
) -> _Scene:
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
        layers = surveyed.convs if layer_kind(lens) == "conv" else surveyed.layers
        layers = layers or surveyed.layers  # a lens that needs a conv layer says so itself
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
    return _Scene(shown, model, model_input, size, whole, layers, listed, layer, step)


def _show_channels(scene: _Scene, capture: Capture) -> _Drawing:
    """How the channels are drawn, the channels, and beside them the one that is picked up."""
    grid_column, inspector_column = st.columns([5, 3], gap="medium")
    started = time.perf_counter()
    recorded = capture[str(scene.step)]
    volume = recorded.values.ndim == 4  # of which the middle slice is shown
    depth = recorded.values.shape[1] // 2 if volume else None
    maps = torch.from_numpy(as_maps(recorded.values.numpy(), depth)[0])
    activation = replace(recorded, values=maps)
    with grid_column:
        view = pick_view(activation.values.shape[0])
        grid = draw_grid(scene.model, scene.model_input, recorded, view, depth)
        show_grid(grid, scene.shown)
        facts = st.empty()
    with inspector_column, st.container(key="hv-inspector"):
        shape = tuple(scene.model_input.tensor.shape[1:])
        picked = chosen_channel(grid) is not None
        field = receptive_fields(scene.model, shape).get(str(scene.step)) if picked else None
        with st.container(key="hv-picked" if picked else "hv-hints"):
            channel = show_inspector(grid, activation, capture, scene.shown, field)
            if channel is not None:
                show_origin(
                    scene.model, scene.model_input, scene.layer, grid, activation, channel=channel
                )
    return _Drawing(capture, grid, channel, facts, time.perf_counter() - started)


def _show_files(scene: _Scene, drawing: _Drawing) -> None:
    """What can be kept of the drawing and handed on."""
    show_downloads(drawing.grid, drawing.capture, scene.model)
    file = scene.shown.file
    recipe = recipe_of(
        scene.model,
        file.name if file else scene.shown.image.name,
        drawing.grid,
        size=scene.size,
        whole=scene.whole,
        channel=drawing.channel,
    )
    show_code(recipe, scene.shown, scene.model)
    show_share(scene.shown)


def _show_cost(drawing: _Drawing) -> None:
    """What the drawing cost."""
    capture, cache = drawing.capture, resources.session_cache()
    how = "one forward pass" if capture.forward_passes else "from this session's cache"
    st.caption(
        f"{how} {capture.seconds * 1000:.0f} ms · drawn in {drawing.seconds * 1000:.0f} ms · "
        f"{cache.used / 1e6:.0f} of {cache.limit / 1e6:.0f} MB kept"
    )
