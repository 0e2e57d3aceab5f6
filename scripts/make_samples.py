"""Make the sample images in `assets/samples`, their list and `assets/README.md`.

``python -m scripts.make_samples`` needs scikit-image, whose package carries the photographs.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from PIL import Image
from skimage import data

from hookviz.lessons.drawings import SAMPLE_SEEDS, draw
from hookviz.settings import ASSETS

FOLDER = ASSETS / "samples"
LIST_FILE = FOLDER / "samples.json"
PHOTO_SIDE = 512  # pixels of the longer side; none is enlarged
DRAWN_SIDE = 256


@dataclass(frozen=True, slots=True)
class Sample:
    """One image to start from, with what has to be said about it.

    Attributes:
        file: its name in `assets/samples`.
        title: a few words for a button.
        alt: a sentence that describes the picture to somebody who can't see it.
        kind: ``"photo"`` or ``"drawn"``.
        source: who made it and where it was taken from.
        licence: under which terms it can be passed on.
    """

    file: str
    title: str
    alt: str
    kind: str
    source: str
    licence: str


_CC0 = "CC0 1.0"
_PUBLIC_DOMAIN = "Public domain"
_PACKAGE = "from the scikit-image package, skimage.data"

PHOTOS = (
    Sample(
        "cat.jpg",
        "Cat",
        "The face of a tabby cat with green eyes and long whiskers, looking past the camera.",
        "photo",
        f"Stefan van der Walt; {_PACKAGE}.chelsea",
        _CC0,
    ),
    Sample(
        "coffee.jpg",
        "Coffee",
        "An espresso in a white and red cup on a red saucer with a spoon, on a wooden table.",
        "photo",
        f"Rachel Michetti, courtesy of Pikolo Espresso Bar; {_PACKAGE}.coffee",
        _CC0,
    ),
    Sample(
        "astronaut.jpg",
        "Astronaut",
        "The astronaut Eileen Collins in an orange suit, in front of a flag and a model shuttle.",
        "photo",
        f"NASA, https://flic.kr/p/r9qvLn; {_PACKAGE}.astronaut",
        _PUBLIC_DOMAIN,
    ),
    Sample(
        "rocket.jpg",
        "Rocket",
        "A Falcon 9 rocket upright on its launch pad at dusk, between four lattice towers.",
        "photo",
        f"SpaceX, https://www.flickr.com/photos/spacexphotos/16511594820; {_PACKAGE}.rocket",
        _PUBLIC_DOMAIN,
    ),
    Sample(
        "camera.jpg",
        "Photographer",
        "A man in a dark coat looking through a camera on a tripod in a park, black and white.",
        "photo",
        f"Lav Varshney; {_PACKAGE}.camera",
        _CC0,
    ),
    Sample(
        "brick.jpg",
        "Bricks",
        "A wall of long grey bricks with light joints, turned so that the rows stand upright.",
        "photo",
        f"CC0Textures, https://cc0textures.com/view.php?tex=Bricks25; {_PACKAGE}.brick",
        _CC0,
    ),
)

_DRAWN = (
    ("star", 9, "A purple star with five points on a white ground that darkens to one side."),
    ("flower", 9, "A magenta flower with five petals that throws a shadow on a lilac ground."),
    ("heart", 4, "A yellow heart, tilted, on an indigo ground."),
    ("ring", 4, "A thick dark purple ring on a turquoise ground."),
    ("rising stripes", 8, "Green and white stripes that rise to the right."),
    ("checks", 0, "A tilted chessboard of yellow and pink squares."),
    ("dots", 10, "Tilted rows of dark dots on a pale yellow ground."),
    ("rainbow", 9, "Bands in all colours of the rainbow, as rings around the lower left corner."),
)


def _drawing(category: str, seed: int, alt: str) -> Sample:
    file = f"{category.replace(' ', '-')}.jpg"
    source = f"drawn by hookviz/lessons/drawings.py, category {category}, seed {seed}"
    return Sample(file, category.capitalize(), alt, "drawn", source, _CC0)


def main() -> None:
    """Write every image, then the list, then the page that people read."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    samples = list(PHOTOS)
    for photo in PHOTOS:
        pixels = getattr(data, photo.source.rsplit(".", 1)[-1])()
        image = Image.fromarray(pixels).convert("RGB")
        image.thumbnail((PHOTO_SIDE, PHOTO_SIDE), Image.Resampling.LANCZOS)
        _save(image, photo.file)
    for category, number, alt in _DRAWN:
        seed = SAMPLE_SEEDS[number]
        sample = _drawing(category, seed, alt)
        _save(draw(category, seed, DRAWN_SIDE), sample.file)
        samples.append(sample)
    listed = [asdict(sample) for sample in samples]
    LIST_FILE.write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    Path(ASSETS / "README.md").write_text(_readme(samples), encoding="utf-8")


def _save(image: Image.Image, file: str) -> None:
    # subsampling=0 keeps colour edges as sharp as brightness edges
    image.save(FOLDER / file, quality=88, subsampling=0, optimize=True)


def _readme(samples: list[Sample]) -> str:
    rows = "\n".join(
        f"| [{sample.file}](samples/{sample.file}) | {sample.alt} | {sample.source} "
        f"| {sample.licence} |"
        for sample in samples
    )
    return f"""# What ships with HookViz

Three trained networks, each with its weights, what was measured of it, and its model card:

| network | weights | figures | card | licence | made by |
|---|---|---|---|---|---|
| SqueezeNet (photographs) | `squeezenet.safetensors` | `squeezenet.json` | [card](squeezenet.md) \
| [Apache-2.0](LICENSE-squeezenet), from the ONNX Model Zoo | `python -m scripts.make_squeezenet` |
| ShapesNet (drawings) | `bundled.safetensors` | `bundled.json` | [card](bundled.md) \
| MIT, HookViz's own | `python -m scripts.train_bundled` |
| ShapesViT (drawings) | `shapesvit.safetensors` | `shapesvit.json` | [card](shapesvit.md) \
| MIT, HookViz's own | `python -m scripts.train_shapesvit` |

## Atlases

`atlases/shapesnet.atlas` and `atlases/squeezenet.atlas` say what excites each channel of the two
CNNs, among the sample images and a hundred more drawings in `atlases/drawings`, drawn by
`hookviz/lessons/drawings.py` and dedicated to the public domain under CC0. Their patches are parts
of these pictures, under the same terms. `python -m scripts.make_atlases` makes all of it again.

## Sample images

`samples/samples.json` lists them for programs; the first one is selected at the start.
`python -m scripts.make_samples` makes them and this page again. Photographs were scaled down to
{PHOTO_SIDE} px and saved as JPEG, otherwise unchanged. The drawn ones are dedicated to the public
domain under CC0 too.

| file | what it shows | source | licence |
|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
