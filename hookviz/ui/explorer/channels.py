"""Show a layer, its channels and the one picked up: the part of the page that runs by itself.

Whatever is done in here, the rest of the page stands as it is and costs nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import streamlit as st

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.grid import Grid
from hookviz.drawing.held_scale import Held
from hookviz.drawing.pair import Pair
from hookviz.errors import HookVizError
from hookviz.explaining.layer_facts import facts
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.language.saying import say
from hookviz.serving import out_of_memory
from hookviz.types import Activation, Capture, LayerInfo, Model, ModelInput
from hookviz.ui.explorer.channel_grid import draw_grid, show_grid
from hookviz.ui.explorer.channel_pair import show_pinned_channel
from hookviz.ui.explorer.comparison import (
    PinnedPair,
    own_sort,
    show_comparison,
    show_pair,
    sorts,
)
from hookviz.ui.explorer.inspector import show_inspector
from hookviz.ui.explorer.layer_bar import show_layer
from hookviz.ui.explorer.layer_capture import capture_layer
from hookviz.ui.explorer.layer_choice import choose_layer
from hookviz.ui.explorer.map_origin import show_origin
from hookviz.ui.explorer.own_picture import offer_own_picture
from hookviz.ui.explorer.patch_tiles import offer_patches, patch_tiles
from hookviz.ui.explorer.pinned_view import image_title, model_title
from hookviz.ui.explorer.top_activations import show_top_activations
from hookviz.ui.explorer.view_choice import pick_view
from hookviz.ui.glossary import marked
from hookviz.ui.link import restore_reverted
from hookviz.ui.recent_images import is_brought
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice, Shown, chosen_channel, plain


@dataclass(frozen=True, slots=True)
class ExplorerScene:
    """The image, network and layers that the explorer shows, as chosen in the rest of the page.

    Streamlit keeps what a fragment is given until the page runs again, so no model is in it.

    Attributes:
        shown: the image.
        choice: the network.
        model_input: what the network is given.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        trace: the network's layers, as it runs on that input.
        layers: those on offer, in order of execution.
        listed: which list they are, one of `LISTS`; None where a lens chose them.
        held: the scale that a stream held whose frame this is, if it did.
    """

    shown: Shown
    choice: ModelChoice
    model_input: ModelInput
    size: int | None
    whole: bool
    trace: LayerTrace
    layers: Sequence[LayerInfo]
    listed: str | None
    held: Held | None = None


@dataclass(slots=True)
class Drawing:
    """A scene's drawing as it is now. Menus elsewhere on the page read it when they are opened.

    Attributes:
        capture: the pass that recorded the layer.
        layer: the layer.
        grid: its channels as drawn by themselves; None where they can't be.
        pair: they as B beside what is pinned as A, if anything is.
        channel: the one that is picked up, if any.
    """

    capture: Capture
    layer: LayerInfo
    grid: Grid | None = None
    pair: Pair | None = None
    channel: int | None = None


def show_channels(scene: ExplorerScene) -> Drawing | None:
    """Show the layer, how its channels are drawn, the channels, and the one picked up beside them.

    Returns None where nothing could be recorded, which the page says.
    """
    drawings: list[Drawing] = []
    _show(scene, _page_request(), drawings)
    return drawings[0] if drawings else None


class PageRequest(NamedTuple):
    """The choices that the rest of the page shows; a change of one runs the whole page again."""

    layer: str | None
    lens: str | None
    image: str | None
    sample: str | None
    brought: bool


def _page_request() -> PageRequest:
    return PageRequest(
        st.query_params.get("layer"),
        st.query_params.get("lens"),
        st.session_state.get("image"),
        st.query_params.get("sample"),
        is_brought(),
    )


@st.fragment
def _show(scene: ExplorerScene, before: PageRequest, drawings: list[Drawing]) -> None:
    """Run once; `drawings` gets the drawing of the first run, and later runs write into that one.

    `before` is what was asked for when the page last ran.
    """
    restore_reverted()
    layer, *rest = _page_request()
    offered = layer in (None, before.layer, *(each.name for each in scene.layers))
    if rest != list(before[1:]) or not offered:  # a click in here led to what all of the page shows
        st.rerun()
    try:
        with (
            out_of_memory.translate_oom(say("Drawing the channels")),
            resources.use_model(scene.choice) as model,
        ):
            _draw(scene, model, drawings)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _draw(scene: ExplorerScene, model: Model, drawings: list[Drawing]) -> None:
    layer, step = show_layer(
        scene.layers,
        scene.trace,
        scene.listed,
        partial(offer_patches, model, scene.shown.image),
    )
    capture = capture_layer(model, scene.model_input, step.layer)
    started = time.perf_counter()
    if drawings:
        drawing = drawings[0]
        drawing.capture, drawing.layer, drawing.grid = capture, layer, None
    else:
        drawings.append(drawing := Drawing(capture, layer))
    recorded = capture[str(step)]
    maps = middle_maps(recorded.values)
    choice = scene.choice
    title = model_title(choice.spec.title, choice.weights, choice.mask)
    compared = show_comparison(
        maps,
        (image_title(scene.shown), title, str(step)),
        (model.name, model.digest, scene.model_input.digest, str(step)),
    )
    names = [each.name for each in scene.layers]
    on_layer = partial(choose_layer, names=names, listed=scene.listed)
    grid_column, inspector_column = st.columns([5, 3], gap="medium")
    with grid_column:
        view = pick_view(maps.shape[0], sorts(compared))
        drawing.grid = draw_grid(
            model, scene.model_input, recorded, own_sort(view), held=scene.held
        )
        drawing.pair = None
        if compared is None:
            tiles, patches = patch_tiles(model, scene.shown.image, drawing.grid, maps.numpy())
            show_grid(tiles, scene.shown, on_layer, patches=patches)
        else:
            drawing.pair = pair = compared.draw(view, drawing.grid.title)
            show_pair(compared, pair, scene.shown, on_layer)
        line = st.empty()
    with inspector_column, st.container(key="hv-inspector"):
        later = _show_picked(scene, model, drawing, replace(recorded, values=maps), compared)
    seconds = time.perf_counter() - started
    # after all else: it takes a while for a network that is seen first
    field = receptive_fields(model, _shape(scene)).get(layer.name)
    kind = say("conv layer") if scene.listed == "conv" else say("layer")
    said = say(
        "{kind} {number} of {layer_count} · {facts}",
        kind=kind,
        number=layer.index + 1,
        layer_count=len(scene.layers),
        facts=facts(layer, field),
    )
    line.caption(marked(said), unsafe_allow_html=True)
    _show_cost(capture, seconds)
    if later is not None:
        later()


def _show_picked(
    scene: ExplorerScene,
    model: Model,
    drawing: Drawing,
    activation: Activation,
    compared: PinnedPair | None,
) -> Callable[[], None] | None:
    """Show the channel in the link large, and why a cell has its value; without one, hints.

    Returns what takes so long that it is done when all else is there.
    """
    later = None
    if compared and drawing.pair and not drawing.pair.alike and compared.face == "a":
        show_pinned_channel(compared, drawing.pair.a)
        drawing.channel = None  # of B none is picked
        return None
    grid = drawing.grid if drawing.pair is None else drawing.pair.b
    assert grid is not None
    picked = chosen_channel(grid.order) is not None
    fields = receptive_fields(model, _shape(scene)) if picked else {}
    of_cell = fields.get(str(activation.address))
    with st.container(key="hv-picked" if picked else "hv-hints"):
        pair = drawing.pair
        channel = show_inspector(
            grid,
            activation,
            drawing.capture,
            scene.shown,
            of_cell,
            compared=(compared, pair) if compared and pair and pair.alike else None,
        )
        if channel is not None:
            is_conv = any(conv.name == activation.layer for conv in scene.trace.convs)
            show_top_activations(model, scene.choice, activation, channel, is_conv=is_conv)
            later = offer_own_picture(model, activation, channel, grid.order.tolist())
            show_origin(model, scene.model_input, drawing.layer, grid, activation, channel=channel)
    drawing.channel = channel
    return later


def _shape(scene: ExplorerScene) -> tuple[int, ...]:
    return tuple(scene.model_input.tensor.shape[1:])


def _show_cost(capture: Capture, seconds: float) -> None:
    """Say what the drawing cost in time and memory."""
    cache = resources.session_cache()
    how = say("one forward pass") if capture.forward_passes else say("from this session's cache")
    st.caption(
        say(
            "{origin} {capture_ms:.0f} ms · drawn in {drawing_ms:.0f} ms · {used:.0f} of "
            "{limit:.0f} MB kept",
            origin=how,
            capture_ms=capture.seconds * 1000,
            drawing_ms=seconds * 1000,
            used=cache.used / 1e6,
            limit=cache.limit / 1e6,
        )
    )
