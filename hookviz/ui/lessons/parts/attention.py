"""Draw each head's weights for a patch that can be picked, and one head's over the image."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.language.saying import mark, say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.attention import (
    CELL,
    CLASS,
    PATCH,
    PLACES,
    Attending,
    attending,
    cell_text,
)
from hookviz.lessons.pictures import photograph
from hookviz.ui.components.map import show_map
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import (
    choose,
    pick,
    pick_channel,
    picked,
    picked_channel,
    remember_link,
    remember_shown,
)
from hookviz.ui.state import Cell, plain
from hookviz.wording import percent

_HEIGHT = 190  # pixels of the heads' maps
_PLACES = {
    "first": mark("First layer"),
    "middle": mark("Middle layer"),
    "last": mark("Last layer"),
}
_TOKENS = {PATCH: mark("A patch"), CLASS: mark("The class token")}


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the heads of the chosen layer for the chosen token, and the picked one large."""
    place = _place(options["layer"], key)
    layer = attending(scene, place)
    if layer is None:
        st.info(
            say(
                "In {model} no patches attend to each other. ShapesViT, which ships with HookViz, "
                "is a network in which they do.",
                model=scene.model.title,
            ),
            icon=":material/info:",
        )
        return
    remember_link(key, {"layer": layer.layer})
    asks = _token(layer, options["asks"], key)
    row, column = _patch(layer, key)
    shown = {"layer": place, CELL: cell_text(row, column)}
    remember_shown(key, shown, {"layer": options["layer"], CELL: cell_text(*layer.middle)})
    query = layer.query_at(row, column) if asks == PATCH else 0
    maps = layer.maps(query)
    strongest = int(layer.of_query(query).max(1).argmax())
    head = picked_channel(key, len(maps), strongest)
    st.caption(plain(say("What each head of {layer} weighs", layer=layer.layer)))
    mosaic(
        grid_of(maps, layer.layer),
        say("The weights of each head of {layer}, patch by patch.", layer=layer.layer),
        partial(pick_channel, key),
        key=f"{key}-heads",
        height=_HEIGHT,
        chosen=head,
    )
    left, right = st.columns(2, gap="small")
    with left:
        _show_mean(layer, maps, (row, column), key)
    with right:
        _show_head(scene, layer, maps, head, (row, column) if asks == PATCH else None)


def _place(asked: str, key: str) -> str:
    """Let choose among the places, beginning at the lesson's; a layer by name stands alone."""
    return _choose(say("Layer"), _PLACES, asked, key, "place") if asked in PLACES else asked


def _token(layer: Attending, asked: str, key: str) -> str:
    """Let choose between a patch and the class token, where there is one."""
    return _choose(say("Who attends"), _TOKENS, asked, key, "token") if layer.prefix else PATCH


def _choose(label: str, names: Mapping[str, str], first: str, key: str, word: str) -> str:
    """Let choose one of a few by their names."""
    return choose(
        st.segmented_control,
        label,
        tuple(names),
        key,
        word,
        first=first,
        format_func=lambda name: say(names[name]),
        required=True,
        label_visibility="collapsed",
    )


def _patch(layer: Attending, key: str) -> Cell:
    """Return the patch that was picked, else the one in the middle."""
    row, column = picked(key, "cell", layer.middle)
    return min(row, layer.rows - 1), min(column, layer.columns - 1)


def _show_mean(layer: Attending, maps: np.ndarray, patch: Cell, key: str) -> None:
    """Show the mean of the heads, in which a click picks the patch that attends."""
    mean = maps.mean(0, keepdims=True).astype(np.float32)
    st.caption(say("The mean of the heads: pick the patch that attends"))

    def take(cell: Cell) -> None:
        pick(key, "cell", cell)
        if layer.prefix:
            pick(key, "token", PATCH)

    show_map(grid_of(mean), 0, mean[0], patch, take, key=f"{key}-mean")


def _show_head(
    scene: LessonScene, layer: Attending, maps: np.ndarray, head: int, patch: Cell | None
) -> None:
    """Show a head's weights over the image, the patch that attends framed."""
    st.caption(say("Head {head} on the image", head=head))
    height, width = scene.model_input.tensor.shape[2:]
    box = None
    if patch is not None:
        sides = height / layer.rows, width / layer.columns
        edges = [(at * side, (at + 1) * side) for at, side in zip(patch, sides, strict=True)]
        (top, bottom), (left, right) = edges
        box = (round(top), round(left), round(bottom), round(right))
    grid = make_grid(maps, sort="index", scale="channel", colormap="inferno")
    st.image(
        photograph(scene, grid.channel_pixels(head), box),
        width="stretch",
        output_format="JPEG",
        alt=say("The weights of head {head} laid over the image.", head=head),
    )
    weights = maps[head]
    most = float(weights.max())
    st.caption(
        plain(
            say(
                "Most for one patch: {most}; all patches together: {together}.",
                most=percent(most),
                together=percent(float(weights.sum())),
            )
        )
    )
