"""Make the atlases in `assets/atlases`, with the drawings that they are of.

``python -m scripts.make_atlases`` draws the pictures and makes an atlas of them and the samples for
each network in the box. One image a pass: the values are exactly those that the page shows.
"""

import shutil
import sys
from pathlib import Path

import torch

import hookviz
from hookviz.images.samples import samples
from hookviz.lessons.drawings import SAMPLE_SEEDS, draw
from hookviz.models.shapesnet import CATEGORIES
from hookviz.settings import ASSETS

FOLDER = ASSETS / "atlases"
DRAWINGS = FOLDER / "drawings"
FIRST_SEED = SAMPLE_SEEDS.start + 1000  # past the seeds that the sample images are of
PER_CLASS = 5
SIDE = 128  # pixels of a drawing
PHOTOGRAPHS = "photograph"  # the class of the samples that are no drawings
NETWORKS = {"shapesnet": 4, "squeezenet": 3}
"""Networks in the box, and how many images are kept of each of their channels."""

PATCH = 32  # pixels
MEGABYTES = 7.0
"""What all of it may take together."""


def main() -> int:
    """Draw, make both, and say how large they are."""
    torch.set_num_threads(1)  # the last digits depend on it
    images = {**drawings(), **of_samples()}
    for name, top in NETWORKS.items():
        model = hookviz.load_model(name)
        atlas = hookviz.make_atlas(
            model, images, FOLDER / f"{name}.atlas", top=top, batch=1, patch=PATCH, overwrite=True
        )
        print(f"{name}: {sum(atlas.layers.values()):,} channels, {size(atlas.path):.1f} MB")
    whole = size(FOLDER)
    print(f"{whole:.1f} MB together")
    return int(whole > MEGABYTES)


def drawings() -> dict[str, Path]:
    """Draw a few pictures of every class of ShapesNet, by their names."""
    shutil.rmtree(DRAWINGS, ignore_errors=True)
    drawn = {}
    for category in CATEGORIES:
        folder = DRAWINGS / category.replace(" ", "-")
        folder.mkdir(parents=True)
        for number in range(1, PER_CLASS + 1):
            path = folder / f"{number}.jpg"
            draw(category, FIRST_SEED + number, SIDE).save(path, quality=85)
            drawn[f"{category}/{category} {number}.jpg"] = path
    return drawn


def of_samples() -> dict[str, Path]:
    """Return the samples by their names; the drawn ones are of their own class."""
    named = {}
    for sample in samples():
        category = sample.name.replace("-", " ")
        kind = category if category in CATEGORIES else PHOTOGRAPHS
        named[f"{kind}/{sample.path.name}"] = sample.path
    return named


def size(folder: Path) -> float:
    """Return the megabytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
