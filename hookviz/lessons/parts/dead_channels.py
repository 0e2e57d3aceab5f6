"""Channels that say nothing: on this image, and on every sample as well."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.capturing.inputs import prepare
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.language.saying import mark
from hookviz.lessons.activations import activation_of, captured
from hookviz.lessons.kept import kept
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, Option, Options, Part, Scene
from hookviz.types import Activation, Address, InputImage, LayerInfo

MOST = "most"
"""Stands for the layer with the most channels that are 0 everywhere on the scene's image."""


@dataclass(frozen=True, eq=False, slots=True)
class Dead:
    """Which channels are 0 everywhere, image by image.

    Attributes:
        layer: the conv layer.
        address: where its channels are looked at: the ReLU behind it, which in some networks is
            behind the sum with a shortcut, or the layer itself.
        maps: what stands there for the scene's own image.
        titles: of the images, this one first and called "".
        silent: whether a channel is 0 everywhere on an image, ``(images, C)``.
    """

    layer: LayerInfo
    address: str
    maps: Activation
    titles: tuple[str, ...]
    silent: NDArray[np.bool_] = field(repr=False)

    @property
    def so_far(self) -> NDArray[np.int64]:
        """How many channels are 0 on each of the first k images, for every k from 1."""
        always = np.logical_and.accumulate(self.silent, 0)
        counts: NDArray[np.int64] = always.sum(1, dtype=np.int64)
        return counts

    def woken_by(self, channel: int) -> tuple[str, ...]:
        """On which of the samples the channel is not 0 everywhere."""
        return tuple(
            title
            for title, silent in zip(self.titles[1:], self.silent[1:, channel], strict=True)
            if not silent
        )


def dead(scene: Scene, options: Options) -> Dead:
    """The channels that are 0 everywhere, on this image and on each of the samples."""
    layer = layer_of(scene, _named(scene, options["layer"]))
    room = 8 * int(np.prod(layer.output_shape))
    return kept(scene, ("dead", layer.name), lambda: _dead(scene, layer), room)


def _named(scene: Scene, asked: str) -> str:
    """The layer that is asked for, which can be the one with the most channels that are 0."""
    if asked != MOST or not scene.trace.convs:
        return asked
    return kept(scene, ("most dead",), lambda: _most_dead(scene), 100)


def _most_dead(scene: Scene) -> str:
    behind = {info.name: activation_of(scene, info) for info in scene.trace.convs}
    layers = {Address.read(address).layer for address in behind.values()}
    found = capture(scene.model, scene.model_input, layers, logits=False)
    counts = {name: int(_silent(found[address]).sum()) for name, address in behind.items()}
    return max(counts, key=counts.__getitem__)


def _dead(scene: Scene, layer: LayerInfo) -> Dead:
    address = activation_of(scene, layer)
    maps = captured(scene.model, scene.model_input, address)
    others = [sample for sample in samples() if _image(sample.path).digest != scene.image.digest]
    rows = [_silent(maps)]
    for sample in others:
        made = prepare(scene.model, _image(sample.path))
        rows.append(_silent(captured(scene.model, made, address)))
    return Dead(layer, address, maps, ("", *(sample.title for sample in others)), np.stack(rows))


@cache
def _image(path: Path) -> InputImage:
    """A sample; together they take a few megabytes."""
    return reading.read(path)


def _silent(maps: Activation) -> NDArray[np.bool_]:
    silent: NDArray[np.bool_] = (maps.values == 0).flatten(1).all(1).numpy()
    return silent


def _facts(scene: Scene, options: Options) -> Mapping[str, Fact]:
    found = dead(scene, options)
    so_far = found.so_far
    return {
        "layer": found.layer.name,
        "address": found.address,
        "channels": found.silent.shape[1],
        "dead": int(so_far[0]),
        "images": len(found.titles),
        "samples": len(found.titles) - 1,
        "always": int(so_far[-1]),
        "woken": int(so_far[0] - so_far[-1]),
    }


def _link(scene: Scene, options: Options) -> Mapping[str, str]:
    return {"layer": layer_of(scene, _named(scene, options["layer"])).name, "lens": "health"}


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
