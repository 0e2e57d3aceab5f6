"""Look at who attends to whom: what each head of a layer weighs for one patch, or the class."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import ModelError
from hookviz.explaining.attention.weights import attention
from hookviz.language.saying import say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.types import TOKENS

PLACES = ("first", "middle", "last")
"""What a lesson can say in place of the name of a layer that attends."""

CLASS = "class"
PATCH = "patch"
CELL = "cell"
"""Among the options the row and column of the patch picked; a lesson's file has none."""

_FACTS = (
    *("layer", "layers", "heads", "tokens", "patches", "rows", "columns", "prefix", "even"),
    *("row", "column", "top", "top_head", "times", "near", "near_even", "half"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Attending:
    """A layer in which the patches of an image attend to each other.

    Attributes:
        layer: its name.
        layers: the names of all such layers of the network.
        weights: float32 ``(heads, queries, keys)``; each query's row has the sum 1.
        rows: of the grid of patches.
        columns: of the grid of patches.
        prefix: tokens in front of the patches, such as a class token.
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
        """Return each head's weights where the patches lie, ``(heads, rows, columns)``."""
        return self.of_query(query)[:, self.prefix :].reshape(-1, self.rows, self.columns)

    def query_at(self, row: int, column: int) -> int:
        """Return the number of a patch's token."""
        return self.prefix + row * self.columns + column

    @property
    def middle(self) -> tuple[int, int]:
        """The row and column of the patch in the middle."""
        return self.rows // 2, self.columns // 2


def attending(scene: LessonScene, place: str) -> Attending | None:
    """Return the layer at one of `PLACES`, or of that name; None where the network has none.

    Layers count in which all patches and nothing else but tokens in front attend to each other: no
    windows.
    """
    # One pass for the lesson's facts, its link and its pictures.
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
    """Return all such layers in order of execution."""
    try:
        found = attention(scene.model, scene.model_input)
    except ModelError:  # nothing in it attends
        return ()
    infos = {info.name: info for info in scene.trace.maps if info.layout == TOKENS}
    known = []
    for layer, weights in found.items():
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
    """Write a patch's row and column as an option has them."""
    return f"{row},{column}"


def first_query(layer: Attending, asked: str, patch: tuple[int, int]) -> int:
    """Return the token that a lesson asks for: the class token, else that of the patch."""
    return 0 if asked == CLASS and layer.prefix else layer.query_at(*patch)


def near(layer: Attending, row: int, column: int) -> NDArray[np.bool_]:
    """Return which patches are that one or touch it, ``(rows, columns)``."""
    rows, columns = np.arange(layer.rows)[:, None], np.arange(layer.columns)
    touching: NDArray[np.bool_] = (abs(rows - row) <= 1) & (abs(columns - column) <= 1)
    return touching


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    layer = attending(scene, options["layer"])
    if layer is None:
        return dict.fromkeys(_FACTS, "–")  # as the part says
    picked = options.get(CELL, cell_text(*layer.middle)).split(",")
    row, column = (
        min(int(at), count - 1)
        for at, count in zip(picked, (layer.rows, layer.columns), strict=True)
    )
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
        Option("asks", PATCH, "Whose weights at first: patch or class.", choice((PATCH, CLASS))),
    ),
    facts=_facts,
    link=_link,
)
