"""Make the gallery of docs/units.md: pictures that SqueezeNet makes, on sheets with their names."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import hookviz
from hookviz.drawing.overlay import input_picture
from hookviz.images.samples import samples
from hookviz.types import Model, Pixels

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
LAYERS = tuple(f"features.{number}.expand3x3" for number in (3, 6, 9, 12))
CHANNELS = range(6)
"""The first ones, so that nobody can have picked those that look well."""
CLASSES = ("Egyptian cat", "Maltese dog", "flamingo", "monarch", "daisy", "geyser")
_SIDE, _GAP, _LABEL = 112, 4, 18
_STEPS = 160

Row = Sequence[tuple[Pixels, str]]
"""Pictures with what stands under each."""


def sheet(rows: Sequence[Row], side: int = _SIDE) -> Image.Image:
    """Lay out rows of square pictures on white, each with its name below."""
    columns = max(len(row) for row in rows)
    high = side + _LABEL + _GAP
    image = Image.new("RGB", (columns * (side + _GAP) - _GAP, len(rows) * high - _GAP), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(11)
    for number, row in enumerate(rows):
        for column, (picture, name) in enumerate(row):
            left, top = column * (side + _GAP), number * high
            shown = Image.fromarray(picture).resize((side, side), Image.Resampling.LANCZOS)
            image.paste(shown, (left, top))
            draw.text((left + side / 2, top + side + 2), name, "black", font, anchor="ma")
    return image


def units(model: Model, space: str, layers: Sequence[str]) -> Image.Image:
    """Picture the same channels of several layers."""
    method = hookviz.MaximizationConfig(size=_SIDE, space=space)
    rows = []
    for layer in layers:
        objectives = [hookviz.Objective.of_channel(layer, channel) for channel in CHANNELS]
        made = hookviz.maximize_activation(model, objectives, steps=_STEPS, method=method)
        names = [f"{layer.removeprefix('features.')}, {channel}" for channel in CHANNELS]
        rows.append(list(zip(made.pictures, names, strict=True)))
    return sheet(rows)


def classes(model: Model) -> Image.Image:
    """Picture classes, by free waves above and by MACO below."""
    rows = []
    for space in ("Fourier", "MACO"):
        method = hookviz.MaximizationConfig(size=_SIDE, space=space)
        objectives = [hookviz.Objective.of_class(model.categories.index(name)) for name in CLASSES]
        made = hookviz.maximize_activation(model, objectives, steps=_STEPS, method=method)
        rows.append([*zip(made.pictures, CLASSES, strict=True)])
    return sheet(rows)


def inversion(model: Model, photograph: Path) -> Image.Image:
    """Show the photograph, and what five layers still know of it."""
    result = hookviz.run_lens("inversion", model, photograph, layers=5, steps=96)
    distances = result.values["distances"]
    names = [
        f"{str(layer).removeprefix('features.')}, {distance:.2g}"
        for layer, distance in zip(result.values["layers"], distances, strict=True)
    ]
    original = input_picture(hookviz.prepare_input(model, photograph))
    return sheet([[(original, "the image"), *zip(result.values["pictures"], names, strict=True)]])


def dream(model: Model, photograph: Path) -> Image.Image:
    """Show a photograph, and what three layers make of it."""
    row = []
    for layer in ("features.4", "features.8", "features.12"):
        result = hookviz.run_lens("dream", model, photograph, layer=layer, steps=64)
        row.append((result.values["picture"], layer))
    return sheet([row], side=224)


def main() -> None:
    """Save every sheet."""
    model = hookviz.load_model("squeezenet")
    photographs = {sample.name: sample.path for sample in samples()}
    sheets: dict[str, Callable[[], Image.Image]] = {
        "units-fourier": lambda: units(model, "Fourier", LAYERS),
        "units-maco": lambda: units(model, "MACO", LAYERS[2:]),
        "units-classes": lambda: classes(model),
        "units-inversion": lambda: inversion(model, photographs["cat"]),
        "units-dream": lambda: dream(model, photographs["cat"]),
    }
    for name, make in sheets.items():
        path = FOLDER / f"{name}.jpg"
        make().save(path, quality=84, optimize=True)
        print(FOLDER.name, path.name, f"{path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
