"""Draw the grid of a layer's channels with its legend: the middle of the page."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from hookviz.drawing.grid import Grid
from hookviz.drawing.held_scale import Held, draw_on_scale, scale_of
from hookviz.drawing.pair import Pair
from hookviz.drawing.patch_sheet import PatchSheet
from hookviz.language.saying import mark, say
from hookviz.types import Activation, Model, ModelInput
from hookviz.ui.components.mosaic import Face, mosaic
from hookviz.ui.explorer.view_choice import resolve_automatic
from hookviz.ui.glossary import marked
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import Cell, Shown, View, choose_cell, choose_channel

_OF_PATCHES = mark("Each tile is what excites its channel most among the atlas's images.")


def draw_grid(
    model: Model,
    model_input: ModelInput,
    activation: Activation,
    view: View,
    *,
    held: Held | None = None,
) -> Grid:
    """Draw the activation as chosen, or take it from the session's cache.

    `held` is the scale that a stream held whose frame this is, for the layer that was looked at
    there.
    """
    address = str(activation.address)
    scale, colormap, of_signed = resolve_automatic(view)
    if held is not None and held.of != scale_of(model, activation, scale):
        held = None
    shown = (address, view, colormap, of_signed, held is not None)
    key = ("grid", model.name, model.digest, model_input.digest, *shown)
    cache = session_cache()
    grid: Grid | None = cache.get(key)
    if grid is None:
        grid = draw_on_scale(
            activation,
            sort=view.sort,
            top=view.top,
            scale=scale,
            colormap=colormap,
            signed_colormap=of_signed,
            held=held,
        )
        cache.put(key, grid, grid.levels.nbytes + len(grid.sprite))
    return grid


def show_grid(
    grid: Grid,
    shown: Shown,
    on_layer: Callable[[str], None],
    *,
    pair: Pair | None = None,
    face: Face = "b",
    patches: PatchSheet | None = None,
) -> None:
    """Show every channel, and one sentence that says what the colours mean.

    `on_layer` gets the name of a layer that is picked in the tree at the side; of a `pair` whose B
    the grid is, each tile shows its `face`. With `patches` each tile is what excites the channel.
    """
    alt = say(
        "{channels} of layer {layer} for: {alt}. {legend}",
        channels=grid.shown,
        layer=grid.title,
        alt=shown.alt,
        legend=grid.legend,
    )
    picked = partial(_pick, grid.shape[1:])
    mosaic(grid, alt, picked, on_layer=on_layer, pair=pair, face=face, patches=patches)
    legend = grid.legend if patches is None else say(_OF_PATCHES)
    how_many = say("{meaning}.", meaning=f"{grid.shown[0].upper()}{grid.shown[1:]}")
    words = f"{legend} {how_many}"
    st.caption(marked(words), unsafe_allow_html=True)


def _pick(size: Cell, channel: int, cell: Cell | None) -> None:
    if cell is None:
        choose_channel(channel)
    else:
        choose_cell(cell, size, channel)
