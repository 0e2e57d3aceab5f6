"""The page: choices at the side, the model's view and its channels in the middle."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing import engine
from hookviz.capturing.survey import list_layers
from hookviz.drawing.grid import make_grid
from hookviz.errors import HookVizError
from hookviz.explaining.layer_facts import facts as layer_facts
from hookviz.explaining.receptive_field import Fields, receptive_fields
from hookviz.recipe.script import recipe_of, script
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.components.navigator import navigator
from hookviz.ui.explorer import capture_view
from hookviz.ui.explorer.inspector import show_inspector
from hookviz.ui.explorer.layer_thumbnails import previews
from hookviz.ui.explorer.map_origin import show_origin
from hookviz.ui.lenses.lens_page import layers_for, pick_lens, show_lens, start_at
from hookviz.ui.serving import resources
from hookviz.ui.serving.login import let_in
from hookviz.ui.serving.turns import turn
from hookviz.ui.sidebar import controls
from hookviz.ui.sidebar.weights_download import wait_for_weights
from hookviz.ui.state import ModelChoice, Shown, choose, plain

_STYLE = Path(__file__).with_name("style.css")
_PATIENCE = 0.5  # seconds after which a person wants to know how far it is


def show() -> None:
    """Draw the page once."""
    st.set_page_config("HookViz", _icon(), layout="wide")
    st.html(_STYLE)
    with st.sidebar:
        st.title("HookViz", anchor=False)
    try:
        if not let_in():
            return
        with st.sidebar:
            shown = controls.pick_image()
            choice = controls.pick_model()
        downloaded_here = choice.spec.download_bytes > 0  # and not by timm
        if choice.weights == "pretrained" and downloaded_here and not choice.spec.on_disk:
            wait_for_weights(choice.spec)
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
    with ExitStack() as in_use:
        with st.spinner(f"Loading {choice.spec.title}…"):
            model = in_use.enter_context(resources.use(choice))
        _show_channels(shown, model)


def _show_channels(shown: Shown, model: Model) -> None:
    with st.sidebar:
        layer_place, view_place, input_place = st.container(), st.container(), st.container()
    with input_place:  # last on the screen, and needed first
        size, whole = controls.pick_input(model)
    with layer_place:
        lens = pick_lens()
        with st.spinner("Reading the network…"):
            made = _prepared(model, shown, size=size, whole=whole)
            shape = made.tensor.shape[1:]
            every = list_layers(model, kind="all", input_shape=shape)
            layers = list_layers(model, kind=layers_for(lens), input_shape=shape)
        if lens is not None:
            start_at(lens, model, every)
        layer = controls.pick_layer(layers, every)
        tree = st.container()
    if lens is not None:
        show_lens(lens, model, made, shown, layer)
        _show_tree(tree, model, made, layers, layer)
        return
    with view_place:
        view = controls.pick_view(layer.output_shape[0])
    seen, says = st.columns([1, 4], gap="medium", wrap=False)
    facts = capture_view.show_layer(layer, layers)
    cache = resources.session_cache()
    kept = engine.is_cached(model, made, layer.name, cache)
    # what is kept needs no turn: it is there at once however many wait
    mine = nullcontext() if kept else turn(model.title, model=model.name, layer=layer.name)
    # a container, so that a run with a wait and one without put all that follows in one place
    with st.container(), mine as run, _progress(model) as report:
        within = run.within(report) if run else report
        capture = engine.capture(model, made, layer.name, cache=cache, progress=within)
    with seen:
        capture_view.show_input(capture, shown)
    with says:
        capture_view.show_predictions(capture, model)
    started = time.perf_counter()
    grid = make_grid(
        capture[layer.name],
        sort=view.sort,
        top=view.top,
        scale=view.scale,
        colormap=view.colormap,
    )
    capture_view.show_grid(grid, shown)
    channel = show_inspector(grid, capture[layer.name], capture, shown)
    if channel is not None:
        show_origin(model, made, layer, channel)
    drawn = time.perf_counter() - started
    fields = _show_tree(tree, model, made, layers, layer)
    said = layer_facts(layer, fields.get(layer.name))
    facts.caption(plain(f"conv layer {layer.index + 1} of {len(layers)} · {said}"))
    footer = st.container(horizontal=True, vertical_alignment="center")
    with footer:
        capture_view.show_downloads(grid, capture, model)
        name = shown.file.name if shown.file else shown.image.name
        capture_view.show_code(
            script(recipe_of(model, name, grid, size=size, whole=whole, channel=channel)),
            shown,
            model,
        )
        how = "one forward pass" if capture.forward_passes else "from this session's cache"
        st.caption(
            f"{how} {capture.seconds * 1000:.0f} ms · drawn in {drawn * 1000:.0f} ms · "
            f"{cache.used / 1e6:.0f} of {cache.limit / 1e6:.0f} MB kept"
        )


def _prepared(model: Model, shown: Shown, *, size: int | None, whole: bool) -> ModelInput:
    """What the network is given, from the session's cache where the page has run before."""
    cache = resources.session_cache()
    key = ("input", model.name, model.digest, shown.image.digest, size, whole)
    made: ModelInput | None = cache.get(key)
    if made is None:
        made = engine.prepare(model, shown.image, size=size, whole=whole)
        cache.put(
            key, made, made.tensor.nbytes + (0 if made.picture is None else made.picture.nbytes)
        )
    return made


def _show_tree(
    place: DeltaGenerator,
    model: Model,
    made: ModelInput,
    layers: Sequence[LayerInfo],
    layer: LayerInfo,
) -> Fields:
    """The tree of layers, after all else: it takes a while for a network that is seen first."""
    fields = receptive_fields(model, tuple(made.tensor.shape[1:]))
    with place:
        with st.container():  # for a wait, as above
            small = previews(model, made, resources.session_cache())
        navigator(
            model,
            layers,
            fields,
            small,
            chosen=layer.name,
            on_pick=lambda name: choose(layer=name),
        )
    return fields


@contextmanager
def _progress(model: Model) -> Iterator[Callable[[float], None]]:
    """A progress bar that appears only when a run takes longer than half a second."""
    place = st.empty()
    started = time.perf_counter()

    def report(share: float) -> None:
        if time.perf_counter() - started > _PATIENCE:
            place.progress(share, f"Running {model.title}…")

    yield report
    place.empty()
