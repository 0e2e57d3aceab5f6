"""Draw the eye filter: of all conv layers the channel that answers most to the eyes of a cat.

The article on hooks finds one in a ResNet-34, of which it is drawn where its weights are on the
machine; they are not in the box. ``python -m scripts.eye_filter NAME FILE`` takes another network.
"""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.overlay import color_limit, input_picture, resized
from hookviz.explaining.layers.channel_maps import inside_and_outside
from hookviz.images.samples import samples
from hookviz.lenses.contract.regions import Region
from hookviz.types import Model, Pixels
from scripts.gallery import sheet

EYES = (Region("rect:0.16,0.25,0.43,0.49"), Region("rect:0.77,0.35,0.95,0.55"))
"""Where the eyes of the sample are in what a network sees of it, its middle square."""
_FEWEST = 10  # rows of a map in which an eye has cells of its own
_SIDE = 320


@dataclass(frozen=True, eq=False)
class PartFilter:
    """Channel that answers most to some parts of an image.

    Attributes:
        layer: the conv layer.
        channel: its number.
        score: mean on the parts less the mean elsewhere, in deviations of the channel.
        values: its map, ``(H, W)``.
        looked_at: how many layers and how many channels were compared.
    """

    layer: str
    channel: int
    score: float
    values: NDArray[np.float32] = field(repr=False)
    looked_at: tuple[int, int]


def cat() -> Path:
    """Return the file of the sample whose eyes are marked."""
    return next(sample.path for sample in samples() if sample.name == "cat")


def eye_filter(model: Model) -> PartFilter:
    """Compare all channels of all conv layers with maps large enough to tell an eye."""
    return part_filter(model, cat(), EYES)


def part_filter(
    model: Model, file: Path, parts: Sequence[Region], *, besides: Collection[str] = ()
) -> PartFilter:
    """Compare all channels of all conv layers with maps large enough to tell such parts.

    `besides` are layers that are left out.
    """
    best: PartFilter | None = None
    compared = channels = 0
    for activation in hookviz.capture(model, file).activations:
        maps = activation.values.numpy()
        if maps.ndim != 3 or min(maps.shape[1:]) < _FEWEST or activation.layer in besides:
            continue
        compared, channels = compared + 1, channels + len(maps)
        marked = np.maximum.reduce([part.cover(*maps.shape[1:]) for part in parts])
        scores = np.nan_to_num(inside_and_outside(maps, marked)[3], nan=-np.inf)
        channel = int(scores.argmax())
        if best is None or scores[channel] > best.score:
            score = float(scores[channel])
            best = PartFilter(activation.layer, channel, score, maps[channel], (0, 0))
    if best is None:
        raise hookviz.HookVizError(f"{model.title} has no maps of {_FEWEST} rows or more.")
    return replace(best, looked_at=(compared, channels))


def drawn(model: Model, found: PartFilter) -> Image.Image:
    """Draw what the network saw, the channel's map, and the map over the picture."""
    seen = np.asarray(Image.fromarray(input_picture(hookviz.prepare_input(model, cat()))))
    size = _SIDE, _SIDE
    picture = np.asarray(Image.fromarray(seen).resize(size, Image.Resampling.LANCZOS))
    limit = color_limit(found.values)
    colours: Pixels = coloured(resized(found.values, *size), "RdBu_r", low=-limit, high=limit)
    over = (0.45 * picture + 0.55 * colours).round().astype(np.uint8)
    name = f"{found.layer}, channel {found.channel}"
    return sheet([[(picture, model.title), (colours, name), (over, "on the picture")]], _SIDE)


def main(name: str = "resnet34", file: str = "") -> None:
    """Save the figure of a network whose weights are on the machine."""
    spec = next((spec for spec in hookviz.list_models() if spec.name == name), None)
    if spec is None or not spec.on_disk:
        sys.exit(f"The weights of {name} are not on this machine: hookviz fetch {name}")
    model = hookviz.load_model(name)
    found = eye_filter(model)
    path = Path(file or f"eye-filter-{name}.png")
    drawn(model, found).save(path, quality=84)
    layers, channels = found.looked_at
    print(
        f"{path}: channel {found.channel} of {found.layer}, {found.score:.1f} deviations higher on "
        f"the eyes; of {channels:,} channels in {layers} conv layers"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
