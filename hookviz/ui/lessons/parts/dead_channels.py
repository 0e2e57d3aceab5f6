"""Find channels that are zero everywhere, on this image and on every sample."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.capturing.inputs import prepare_input
from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import ChartPanel
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import activation_of, capture_at, layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part
from hookviz.types import Activation, ActivationKey, LayerInfo
from hookviz.ui.components.panels import chart
from hookviz.ui.components.pictures import mosaic
from hookviz.ui.lessons.figures import show_pictures
from hookviz.ui.lessons.picks import pick_channel, picked_channel
from hookviz.ui.state import plain, sample_image

MOST = "most"
"""Word of a lesson's file for the layer with the most dead channels on the scene's image."""


@dataclass(frozen=True, eq=False, slots=True)
class DeadChannels:
    """Channels of a layer that are 0 everywhere, image by image.

    Attributes:
        layer: the conv layer.
        address: of the ReLU after it, in some networks after the sum with a shortcut, or its own.
        maps: at the address, for the scene's image.
        others: the other images.
        silent: whether a channel is 0 everywhere on an image, ``(images, C)``, the scene's first.
    """

    layer: LayerInfo
    address: str
    maps: Activation
    others: tuple[Sample, ...]
    silent: NDArray[np.bool_] = field(repr=False)

    @property
    def so_far(self) -> NDArray[np.int64]:
        """Number of channels that are 0 on each of the first k images, for every k from 1."""
        always = np.logical_and.accumulate(self.silent, 0)
        counts: NDArray[np.int64] = always.sum(1, dtype=np.int64)
        return counts

    def woken_by(self, channel: int) -> tuple[Sample, ...]:
        """Return the samples on which the channel is not 0 everywhere."""
        silent = self.silent[1:, channel]
        return tuple(each for each, is_0 in zip(self.others, silent, strict=True) if not is_0)


def dead_channels(scene: LessonScene, options: Options) -> DeadChannels:
    """Find the channels that are 0 everywhere, on this image and on each of the samples."""
    layer = layer_of(scene, _layer_name(scene, options["layer"]))
    nbytes = 8 * int(np.prod(layer.output_shape))
    return scene.cached(("dead", layer.name), lambda: _compute(scene, layer), nbytes)


def _layer_name(scene: LessonScene, asked: str) -> str:
    """Return a layer's name or place; for `MOST` the layer with the most dead channels."""
    if asked != MOST or not scene.trace.convs:
        return asked
    return scene.cached(("most dead",), lambda: _most_dead(scene), 100)


def _most_dead(scene: LessonScene) -> str:
    behind = {info.name: activation_of(scene, info) for info in scene.trace.convs}
    layers = {ActivationKey.read(address).layer for address in behind.values()}
    recorded = capture(scene.model, scene.model_input, layers, logits=False)
    counts = {name: int(_silent(recorded[address]).sum()) for name, address in behind.items()}
    return max(counts, key=counts.__getitem__)


def _compute(scene: LessonScene, layer: LayerInfo) -> DeadChannels:
    address = activation_of(scene, layer)
    maps = capture_at(scene.model, scene.model_input, address)
    own = scene.image.digest
    others = tuple(each for each in samples() if sample_image(each).digest != own)
    rows = [_silent(maps)]
    for sample in others:
        model_input = prepare_input(scene.model, sample_image(sample))
        rows.append(_silent(capture_at(scene.model, model_input, address)))
    return DeadChannels(layer, address, maps, others, np.stack(rows))


def _silent(maps: Activation) -> NDArray[np.bool_]:
    silent: NDArray[np.bool_] = (maps.values == 0).flatten(1).all(1).numpy()
    return silent


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    dead = dead_channels(scene, options)
    so_far = dead.so_far
    return {
        "layer": dead.layer.name,
        "address": dead.address,
        "channels": dead.silent.shape[1],
        "dead": int(so_far[0]),
        "images": len(dead.silent),
        "samples": len(dead.others),
        "always": int(so_far[-1]),
        "woken": int(so_far[0] - so_far[-1]),
    }


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, _layer_name(scene, options["layer"])).name, "lens": "health"}


PART = Part(
    name="dead-channels",
    sentence=mark(
        "A layer's channels behind its ReLU, how many are zero everywhere on this image, and how "
        "many stay so on the samples; a click on one tells which samples wake it."
    ),
    options=(
        Option(
            "layer",
            MOST,
            mark("The conv layer, by its name or place, or most: that with most of them."),
        ),
    ),
    facts=_facts,
    link=_link,
)


_GRID_PX = 300  # height
_MOST = 108  # channels


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the grid, the picked channel, and the chart."""
    dead = dead_channels(scene, options)
    silent = np.flatnonzero(dead.silent[0])
    channel = picked_channel(key, dead.silent.shape[1], int(silent[0]) if len(silent) else 0)
    grid = make_grid(dead.maps, sort="zeros", top=_MOST, aspect=3)
    text = say(
        "Channels at {address}, most zeros first. A click tells what wakes one.",
        address=dead.address,
    )
    mosaic(grid, text, partial(pick_channel, key), key=f"{key} grid", height=_GRID_PX)
    st.caption(plain(text))
    st.markdown(plain(_about(dead, channel)))
    show_pictures(dead.woken_by(channel))
    panel = ChartPanel(
        say("Channels that stay dead"),
        tuple(str(index + 1) for index in range(len(dead.silent))),
        {say("channels dead on all of them"): dead.so_far.astype(np.float64)},
        unit=say("channels dead on all of the first images"),
        places=say("images"),
    )
    chart(panel, f"{key} chart", None)
    st.caption(plain(say("Along the bottom: how many images were looked at, yours first.")))


def _about(dead: DeadChannels, channel: int) -> str:
    """Return a sentence on the images that excite the channel."""
    facts = {"channel": channel}
    if not dead.silent[0, channel]:
        return say("Channel {channel} answers on this image.", **facts)
    if dead.woken_by(channel):
        return say("Channel {channel} is silent here, and wakes on:", **facts)
    return say("Channel {channel} is silent here and on every sample.", **facts)
