"""Show the attention of a layer: each head's weights for one patch or for the class token.

A patch can be picked in the mean of the heads, and a head, whose weights lie over the image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.drawing.grid import make_grid
from hookviz.errors import ModelError
from hookviz.explaining.attention.weights import attention
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import photograph
from hookviz.types import TOKENS
from hookviz.ui.components.pictures import mosaic, show_map
from hookviz.ui.lessons.figures import grid_of
from hookviz.ui.lessons.picks import (
    choose_button,
    pick,
    pick_channel,
    picked,
    picked_channel,
    remember_link,
    remember_options,
    within,
)
from hookviz.ui.state import Cell, plain
from hookviz.wording import percent

PLACES = ("first", "middle", "last")
"""Words of a lesson's file for an attention layer."""

_CLASS = "class"
_PATCH = "patch"
CELL = "cell"
"""Option that the page adds: row and column of the picked patch."""

_FACTS = (
    *("layer", "layers", "heads", "tokens", "patches", "rows", "columns", "prefix", "even"),
    *("row", "column", "top", "top_head", "times", "near", "near_even", "half"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Attending:
    """Attention layer over the patches of an image.

    Attributes:
        layer: the layer's name.
        layers: names of all such layers of the network.
        weights: float32 ``(heads, queries, keys)``; each query's row has the sum 1.
        rows, columns: of the grid of patches.
        prefix: tokens before the patches, such as a class token.
    """

    layer: str
    layers: tuple[str, ...]
    weights: NDArray[np.float32]
    rows: int
    columns: int
    prefix: int

    def of_query(self, query: int) -> NDArray[np.float32]:
        """Return each head's weights for all tokens, ``(heads, tokens)``."""
        return self.weights[:, query]

    def maps(self, query: int) -> NDArray[np.float32]:
        """Return each head's weights for the patches, ``(heads, rows, columns)``."""
        return self.of_query(query)[:, self.prefix :].reshape(-1, self.rows, self.columns)

    def query_at(self, row: int, column: int) -> int:
        """Return the number of a patch's token."""
        return self.prefix + row * self.columns + column

    @property
    def middle(self) -> tuple[int, int]:
        """The row and column of the patch in the middle."""
        return self.rows // 2, self.columns // 2


def attending(scene: LessonScene, place: str) -> Attending | None:
    """Return the attention layer at one of `PLACES`, or of a name; None without one.

    Only layers without windows count: all patches, and tokens before them, attend to each other.
    """
    # one pass for facts, link and pictures
    every = scene.cached(
        ("attention",),
        lambda: _every(scene),
        lambda known: sum(each.weights.nbytes for each in known),
    )
    if not every:
        return None
    last = len(every) - 1
    at = {"first": 0, "middle": last // 2, "last": last}
    by_name = {each.layer: each for each in every}
    return by_name.get(place, every[at.get(place, last)])


def _every(scene: LessonScene) -> tuple[Attending, ...]:
    """Return all attention layers in order of execution."""
    try:
        weights_by_layer = attention(scene.model, scene.model_input)
    except ModelError:  # the network has no attention
        return ()
    infos = {info.name: info for info in scene.trace.maps if info.layout == TOKENS}
    known = []
    for layer, weights in weights_by_layer.items():
        info = infos.get(layer)
        if info is None or weights.ndim != 3:
            continue
        _, rows, columns = info.output_shape
        if tuple(weights.shape[1:]) == (info.prefix_tokens + rows * columns,) * 2:
            values = weights.numpy()
            known.append(Attending(layer, (), values, rows, columns, info.prefix_tokens))
    names = tuple(each.layer for each in known)
    return tuple(replace(each, layers=names) for each in known)


def cell_text(row: int, column: int) -> str:
    """Write a patch's row and column as an option."""
    return f"{row},{column}"


def first_query(layer: Attending, asked: str, patch: tuple[int, int]) -> int:
    """Return the class token's number if `asked` for it and it exists, or that of a patch."""
    return 0 if asked == _CLASS and layer.prefix else layer.query_at(*patch)


def near(layer: Attending, row: int, column: int) -> NDArray[np.bool_]:
    """Return a mask of a patch and its neighbours, ``(rows, columns)``."""
    rows, columns = np.arange(layer.rows)[:, None], np.arange(layer.columns)
    touching: NDArray[np.bool_] = (abs(rows - row) <= 1) & (abs(columns - column) <= 1)
    return touching


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    layer = attending(scene, options["layer"])
    if layer is None:
        return dict.fromkeys(_FACTS, "–")  # the part tells it
    patch = options.get(CELL, cell_text(*layer.middle)).split(",")
    row, column = within((int(patch[0]), int(patch[1])), (layer.rows, layer.columns))
    query = first_query(layer, options["asks"], (row, column))
    weights, maps = layer.of_query(query), layer.maps(query)
    heads, tokens = weights.shape
    touching = near(layer, row, column)
    top = float(weights.max())
    sorted_shares = np.sort(maps.mean(0), axis=None)[::-1].cumsum()
    return {
        "layer": layer.layer,
        "layers": len(layer.layers),
        "heads": heads,
        "tokens": tokens,
        "patches": maps[0].size,
        "rows": layer.rows,
        "columns": layer.columns,
        "prefix": layer.prefix,
        "even": 1 / tokens,
        "row": row,
        "column": column,
        "top": top,
        "top_head": int(weights.max(1).argmax()),
        "times": top * tokens,
        "near": float(maps.mean(0)[touching].sum()),
        "near_even": float(touching.sum()) / tokens,
        "half": int((sorted_shares < sorted_shares[-1] / 2).sum()) + 1,
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    layer = attending(scene, options["layer"])
    return {} if layer is None else {"layer": layer.layer}


def _check_layer(value: str) -> str:
    return "" if value else say("A layer's name works here, or {keyword}.", keyword=PLACES[-1])


PART = Part(
    name="attention",
    sentence="What each head of a layer weighs for one patch, or for the class token: a click on a "
    "patch asks for another, a click on a head lays its weights over the image.",
    options=(
        Option(
            "layer", "last", "A layer that attends: first, middle, last or its name.", _check_layer
        ),
        Option("asks", _PATCH, "Whose weights at first: patch or class.", choice((_PATCH, _CLASS))),
    ),
    facts=_facts,
    link=_link,
    fits=lambda scene: attending(scene, PLACES[-1]) is not None,
)


_HEADS_PX = 190  # height of the heads' maps
_PLACES = {
    "first": mark("First layer"),
    "middle": mark("Middle layer"),
    "last": mark("Last layer"),
}
_TOKENS = {_PATCH: mark("A patch"), _CLASS: mark("The class token")}


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
    row, column = within(picked(key, "cell", layer.middle), (layer.rows, layer.columns))
    start = {"layer": options["layer"], CELL: cell_text(*layer.middle)}
    remember_options(key, {"layer": place, CELL: cell_text(row, column)}, start)
    query = layer.query_at(row, column) if asks == _PATCH else 0
    maps = layer.maps(query)
    strongest = int(layer.of_query(query).max(1).argmax())
    head = picked_channel(key, len(maps), strongest)
    st.caption(plain(say("What each head of {layer} weighs", layer=layer.layer)))
    mosaic(
        grid_of(maps, layer.layer),
        say("The weights of each head of {layer}, patch by patch.", layer=layer.layer),
        partial(pick_channel, key),
        key=f"{key}-heads",
        height=_HEADS_PX,
        chosen=head,
    )
    left, right = st.columns(2, gap="small")
    with left:
        _show_mean(layer, maps, (row, column), key)
    with right:
        _show_head(scene, layer, maps, head, (row, column) if asks == _PATCH else None)


def _place(asked: str, key: str) -> str:
    """Show the choice of a place and return it; a layer by its name has no choice."""
    return _choose(say("Layer"), _PLACES, asked, key, "place") if asked in PLACES else asked


def _token(layer: Attending, asked: str, key: str) -> str:
    """Show the choice between a patch and the class token, if there is one, and return it."""
    return _choose(say("Who attends"), _TOKENS, asked, key, "token") if layer.prefix else _PATCH


def _choose(label: str, names: Mapping[str, str], first: str, key: str, word: str) -> str:
    said = {name: say(text) for name, text in names.items()}
    return choose_button(label, said, key, word, first=first, label_visibility="collapsed")


def _show_mean(layer: Attending, maps: np.ndarray, patch: Cell, key: str) -> None:
    """Show the mean of the heads, in which a click picks the attending patch."""
    mean = maps.mean(0, keepdims=True).astype(np.float32)
    st.caption(say("The mean of the heads: pick the patch that attends"))

    def pick_patch(cell: Cell) -> None:
        pick(key, "cell", cell)
        if layer.prefix:
            pick(key, "token", _PATCH)

    show_map(grid_of(mean), 0, mean[0], patch, pick_patch, key=f"{key}-mean")


def _show_head(
    scene: LessonScene, layer: Attending, maps: np.ndarray, head: int, patch: Cell | None
) -> None:
    """Show a head's weights over the image, with a frame around the attending patch."""
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
