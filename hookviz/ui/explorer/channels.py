"""The channels and the one that is picked up: the part of the page that runs again by itself."""

import time
from dataclasses import dataclass, field, replace

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from hookviz.drawing.dimensions import as_maps
from hookviz.drawing.grid import Grid
from hookviz.errors import HookVizError
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.recipe.script import Recipe, recipe_of
from hookviz.serving import out_of_memory
from hookviz.types import Address, Capture, LayerInfo, Model, ModelInput
from hookviz.ui.explorer.channel_grid import draw_grid, show_grid
from hookviz.ui.explorer.inspector import chosen_channel, show_inspector
from hookviz.ui.explorer.map_origin import show_origin
from hookviz.ui.explorer.view_choice import pick_view
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice, Shown, plain


@dataclass(frozen=True, slots=True)
class Scene:
    """What is looked at, as chosen.

    Streamlit keeps what a fragment is given until the page runs again, so no model is in it.

    Attributes:
        shown: the image.
        choice: the network.
        model_input: what the network is given.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        layer: the layer that is looked at.
        step: whose output is shown: the layer's own, or that of a step after it.
        capture: the pass that recorded it.
    """

    shown: Shown
    choice: ModelChoice
    model_input: ModelInput
    size: int | None
    whole: bool
    layer: LayerInfo
    step: Address
    capture: Capture


@dataclass(slots=True)
class Drawing:
    """What is drawn of a scene now. Menus elsewhere on the page read it when they are opened.

    Attributes:
        grid: the channels as drawn.
        recipe: what the picture depends on.
        facts: what the layer is, as HTML; the page knows it last.
    """

    grid: Grid
    recipe: Recipe
    facts: str = ""
    _line: DeltaGenerator | None = field(default=None, repr=False)

    def say(self, facts: str) -> None:
        """Write below the channels what the layer is."""
        self.facts = facts
        if self._line is not None and facts:
            self._line.caption(facts, unsafe_allow_html=True)


def show_channels(scene: Scene) -> Drawing | None:
    """How the channels are drawn, the channels, and beside them the one that is picked up.

    None where they can't be drawn, and it says why.
    """
    drawings: list[Drawing] = []
    _show(scene, _elsewhere(), drawings)
    return drawings[0] if drawings else None


def _elsewhere() -> tuple[str | None, ...]:
    """What the link says that the rest of the page shows."""
    return tuple(st.query_params.get(name) for name in ("lens", "layer"))


@st.fragment
def _show(scene: Scene, elsewhere: tuple[str | None, ...], drawings: list[Drawing]) -> None:
    """One run; `drawings` has the one of the run before, if any, and then that of this run.

    `elsewhere` is what the link said when the page last ran.
    """
    if _elsewhere() != elsewhere:  # a click in here led there
        st.rerun()
    try:
        with out_of_memory.told("Drawing the channels"), resources.use_model(scene.choice) as model:
            _draw(scene, model, drawings)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _draw(scene: Scene, model: Model, drawings: list[Drawing]) -> None:
    grid_column, inspector_column = st.columns([5, 3], gap="medium")
    started = time.perf_counter()
    capture = scene.capture
    recorded = capture[str(scene.step)]
    volume = recorded.values.ndim == 4  # of which the middle slice is shown
    depth = recorded.values.shape[1] // 2 if volume else None
    maps = torch.from_numpy(as_maps(recorded.values.numpy(), depth)[0])
    activation = replace(recorded, values=maps)
    with grid_column:
        view = pick_view(activation.values.shape[0])
        grid = draw_grid(model, scene.model_input, recorded, view, depth)
        show_grid(grid, scene.shown)
        line = st.empty()
    with inspector_column, st.container(key="hv-inspector"):
        shape = tuple(scene.model_input.tensor.shape[1:])
        picked = chosen_channel(grid) is not None
        of_cell = receptive_fields(model, shape).get(str(scene.step)) if picked else None
        with st.container(key="hv-picked" if picked else "hv-hints"):
            channel = show_inspector(grid, activation, capture, scene.shown, of_cell)
            if channel is not None:
                show_origin(
                    model, scene.model_input, scene.layer, grid, activation, channel=channel
                )
    file = scene.shown.file
    recipe = recipe_of(
        model,
        file.name if file else scene.shown.image.name,
        grid,
        size=scene.size,
        whole=scene.whole,
        channel=channel,
    )
    if drawings:
        drawing = drawings[0]
        drawing.grid, drawing.recipe = grid, recipe
    else:
        drawings.append(drawing := Drawing(grid, recipe))
    drawing._line = line
    drawing.say(drawing.facts)
    _show_cost(capture, time.perf_counter() - started)


def _show_cost(capture: Capture, seconds: float) -> None:
    """What the drawing cost."""
    cache = resources.session_cache()
    how = "one forward pass" if capture.forward_passes else "from this session's cache"
    st.caption(
        f"{how} {capture.seconds * 1000:.0f} ms · drawn in {seconds * 1000:.0f} ms · "
        f"{cache.used / 1e6:.0f} of {cache.limit / 1e6:.0f} MB kept"
    )
