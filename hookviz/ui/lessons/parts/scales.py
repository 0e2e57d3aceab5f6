"""Compare a channel under several colour scales, and all channels under a chosen one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from hookviz.capturing.engine import capture
from hookviz.drawing.grid import Grid, make_grid
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import Activation, LayerInfo
from hookviz.ui.components.pictures import mosaic
from hookviz.ui.lessons.picks import choose_button, pick_channel, picked_channel, remember_options
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

PICKED = "picked"
"""Option that the page adds: the picked channel."""


@dataclass(frozen=True, eq=False, slots=True)
class WeakestChannel:
    """The channel of a layer with the smallest values, beside the layer's largest.

    Attributes:
        layer: the channel's layer.
        maps: of the layer.
        channel: number of the channel, which is not constant.
        largest: the channel's largest |x|.
        of_layer: the layer's largest |x|.
    """

    layer: LayerInfo
    maps: Activation
    channel: int
    largest: float
    of_layer: float


def _weakest_channel(scene: LessonScene, options: Options) -> WeakestChannel:
    """Find the channel with the smallest largest |x| among those that vary.

    Raises:
        HookVizError: no channel of the layer varies.
    """
    layer = layer_of(scene, options["layer"])
    maps = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)[layer.name]
    rows = maps.values.numpy().reshape(len(maps.values), -1)
    sizes = np.abs(rows).max(1)
    varies = rows.max(1) > rows.min(1)
    if not varies.any():
        raise HookVizError(
            say("Every map of {layer} has one value alone on this image.", layer=layer.name)
        )
    channel = int(np.where(varies, sizes, np.inf).argmin())
    return WeakestChannel(layer, maps, channel, float(sizes[channel]), float(sizes.max()))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    weakest = _weakest_channel(scene, options)
    values = weakest.maps.values.numpy()
    channel = min(int(options.get(PICKED, weakest.channel)), len(values) - 1)
    largest = float(np.abs(values[channel]).max())
    return {
        "layer": weakest.layer.name,
        "channels": len(weakest.maps.values),
        "weakest": weakest.channel,
        "channel": channel,
        "largest": number(largest),
        "layer_largest": number(weakest.of_layer),
        "times": weakest.of_layer / largest if largest else float("inf"),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    weakest = _weakest_channel(scene, options)
    return {"layer": weakest.layer.name, "channel": str(weakest.channel), "scale": "channel"}


PART = Part(
    name="scales",
    sentence=mark(
        "All channels of a layer in colours of the learner's choice, and its weakest channel in "
        "all of them beside each other."
    ),
    options=(Option("layer", "early", mark("The conv layer, by its name or place.")),),
    facts=_facts,
    link=_link,
)


_GRID_PX = 250  # height


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the picked channel, at first the weakest, and the grid that it is picked in."""
    weakest = _weakest_channel(scene, options)
    channel = picked_channel(key, len(weakest.maps.values), weakest.channel)
    remember_options(key, {PICKED: str(channel)}, {PICKED: str(weakest.channel)})
    names = {
        "layer": say("one scale for the layer"),
        "channel": say("each channel its own"),
        "symmetric": say("zero in the middle"),
    }
    grids = {scale: _grid(weakest.maps, scale) for scale in names}
    st.markdown(
        plain(
            say(
                "**Channel {channel} of {layer}**, the same numbers each time:",
                channel=channel,
                layer=weakest.layer.name,
            )
        ).replace(r"\*\*", "**")
    )
    for column, (scale, grid) in zip(st.columns(len(grids)), grids.items(), strict=True):
        with column:
            st.image(grid.channel_png(channel, 8), width="stretch", alt=names[scale])
            st.caption(names[scale])
    grid = grids[choose_button(say("All channels"), names, key, "scale", first="layer")]
    alt = say("The channels of {layer}: a click shows one above.", layer=weakest.layer.name)
    mosaic(grid, alt, partial(pick_channel, key), key=f"{key} grid", height=_GRID_PX)
    st.caption(plain(grid.legend))


def _grid(maps: Activation, scale: str) -> Grid:
    return make_grid(maps, scale=scale, colormap=diverging() if scale == "symmetric" else None)
