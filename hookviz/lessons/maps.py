"""Capture the maps that live parts look at, choose channels of them, and correlate two maps.

A map is ``(H, W)``, float32; a layer's maps are ``(C, H, W)``.
"""

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.statistics import channel_stats, order
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene
from hookviz.types import ActivationKey, ModelInput

Map = NDArray[np.float32]

STRONGEST = "strongest"
"""What a lesson writes for the channel with the highest value of all."""


def maps_of(scene: LessonScene, address: ActivationKey | str) -> Map:
    """Return a layer's maps of the lesson's image, ``(C, H, W)``; of a volume its middle slice.

    Raises:
        HookVizError: it puts out no maps.
    """
    layer = ActivationKey(str(address)).layer if isinstance(address, str) else address.layer
    capture = engine.capture(scene.model, scene.model_input, layer, cache=scene.cache)
    maps = middle_maps(capture[str(address)].values)
    if maps.ndim != 3:
        raise HookVizError(
            say("{layer} puts out no maps, which this part needs.", layer=str(address))
        )
    return maps.numpy()


def strongest_first(maps: Map, count: int | None = None) -> list[int]:
    """Return the channels of ``(C, H, W)`` by their highest value, the highest first."""
    channels: list[int] = order(channel_stats(maps), "max", count).tolist()
    return channels


def channel_of(maps: Map, asked: str) -> int:
    """Return the channel of ``(C, H, W)`` that a lesson asks for: a number, or `STRONGEST`.

    A number that a smaller layer has not got stands for its last channel, so that a lesson goes on
    with any model.
    """
    return strongest_first(maps, 1)[0] if asked == STRONGEST else min(int(asked), len(maps) - 1)


def check_channel(value: str) -> str:
    """Return what is wrong with a lesson's channel, in words; empty where it is one."""
    if value == STRONGEST or (value.isascii() and value.isdecimal() and len(value) < 7):
        return ""
    return say("A channel's number works here, or {keyword}.", keyword=STRONGEST)


def correlation(one: Map, other: Map) -> float:
    """Return Pearson's correlation of two maps of one size, cell by cell; 0 where one is flat."""
    a, b = (values.astype(np.float64).ravel() - values.mean() for values in (one, other))
    length = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / length if length > 0 else 0.0


def maps_before_and_after(scene: LessonScene, changed: ModelInput, layer: str) -> tuple[Map, Map]:
    """Return a layer's maps of the lesson's picture and of the changed one, ``(C, H, W)`` each.

    Raises:
        HookVizError: it puts out no maps.
    """
    before = maps_of(scene, layer)
    after = engine.capture(scene.model, changed, layer, logits=False)[layer].values
    return before, middle_maps(after).numpy()


def moved(before: Map, after: Map) -> float:
    """Return how far maps changed, as a share of what they were: |after − before| / |before|."""
    size = float(np.linalg.norm(before))
    return float(np.linalg.norm(after - before)) / size if size else 0.0
