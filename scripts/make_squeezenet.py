"""Make the bundled SqueezeNet: its weights in half precision, what that costs, and its card.

``python -m scripts.make_squeezenet WEIGHTS [PHOTOS]`` reads SqueezeNet 1.1's weights in float32
from a safetensors file, and compares both precisions on the samples and on a folder of further
pictures. It fails, and writes nothing, where another top 5 comes out or a logit moves too far.
"""

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import hookviz
from hookviz.images.samples import samples
from hookviz.models.bundled import SQUEEZENET
from hookviz.settings import ASSETS
from hookviz.types import Model

CARD_FILE = ASSETS / "squeezenet.md"
LICENCE_FILE = ASSETS / "LICENSE-squeezenet"
MOST_MOVED = 0.03  # of a logit, from float32 to half precision
PUBLISHED = (56.3, 79.1)  # top-1 and top-5 in percent on ImageNet's validation set

_PICTURES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the weights on file.

    Attributes:
        parameters: numbers that are learned.
        accuracy: published top-1 on ImageNet's validation set, in percent; not measured here.
        top5_accuracy: published top-5, likewise.
        source_sha256: of the float32 file that the weights on file were made of.
        pictures: how many both precisions were compared on.
        largest_difference: between a logit in half precision and in float32, over all of them.
        samples: for each sample photograph the likeliest label and its probability in percent.
    """

    parameters: int
    accuracy: float
    top5_accuracy: float
    source_sha256: str
    pictures: int
    largest_difference: float
    samples: dict[str, tuple[str, float]]


def halve(source: Path, target: Path) -> None:
    """Write the tensors of one safetensors file into another, in half precision."""
    weights = {name: tensor.half() for name, tensor in load_file(source).items()}
    # One fact alone: safetensors writes several in random order, and equal weights should be
    # equal files.
    save_file(weights, target, metadata={"licence": "Apache-2.0"})
    target.chmod(0o644)  # safetensors keeps it from everybody but its owner


def compare(whole: Model, half: Model, pictures: Iterable[Path]) -> float:
    """Return the largest difference between two models' logits.

    Raises:
        ValueError: another top 5 came out, or a logit moved further than `MOST_MOVED`.
    """
    largest = 0.0
    for path in pictures:
        exact, rounded = (hookviz.capture(model, path, []).logits for model in (whole, half))
        assert exact is not None
        assert rounded is not None
        moved = (rounded - exact).abs().max().item()
        if moved > MOST_MOVED or not torch.equal(rounded.topk(5).indices, exact.topk(5).indices):
            raise ValueError(f"{path.name} comes out otherwise; a logit moved by {moved:.3f}")
        largest = max(largest, moved)
    return largest


def measure(source: Path, weights: Path, further: Iterable[Path] = ()) -> Figures:
    """Measure a file of weights in half precision, beside the float32 ones it came from.

    Raises:
        ValueError: as `compare` does.
    """
    whole = hookviz.load_model(SQUEEZENET.architecture, source)
    half = hookviz.load_model(SQUEEZENET.architecture, weights)
    pictures = [*(sample.path for sample in samples()), *further]
    largest = compare(whole, half, pictures)
    return Figures(
        parameters=sum(tensor.numel() for tensor in half.network.parameters()),
        accuracy=PUBLISHED[0],
        top5_accuracy=PUBLISHED[1],
        source_sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        pictures=len(pictures),
        largest_difference=math.ceil(largest * 1e4) / 1e4,
        samples={
            sample.path.name: _likeliest(half, sample.path)
            for sample in samples()
            if sample.kind == "photo"
        },
    )


def _likeliest(model: Model, picture: Path) -> tuple[str, float]:
    label, probability = hookviz.capture(model, picture, []).predictions(1)[0]
    return label, round(100 * probability, 1)


def on_file() -> Figures:
    """Return the figures that ship."""
    listed = json.loads(SQUEEZENET.figures_file.read_text(encoding="utf-8"))
    listed["samples"] = {name: tuple(said) for name, said in listed["samples"].items()}
    return Figures(**listed)


def card(figures: Figures) -> str:
    """Write the model card in Markdown."""
    rows = "\n".join(
        f"| [{name}](samples/{name}) | {label} | {percent:.1f} % |"
        for name, (label, percent) in figures.samples.items()
    )
    size = SQUEEZENET.weights_file.stat().st_size / 1e6
    steps = SQUEEZENET.preprocess
    return f"""# SqueezeNet (photographs)

SqueezeNet 1.1, trained on ImageNet-1K: the network that HookViz starts with, since it recognises
photographs and needs no download. {figures.parameters:,} parameters, 26 convolutions: a stem and
eight fire modules, each of which squeezes the channels with 1×1 kernels and expands them with 1×1
and 3×3 ones. There is no linear layer: the last convolution has one channel a class, and their
averages are the scores. (Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer
parameters and <0.5MB model size", 2016; 1.1 is their later version with 2.4 times less to compute.)

| | top-1 | top-5 |
|---|---|---|
| ImageNet's validation set, as published for these weights | **{figures.accuracy:.1f} %** \
| {figures.top5_accuracy:.1f} % |

## Weights

`squeezenet.safetensors`, {size:.2f} MB. They come from the ONNX Model Zoo (`squeezenet1.1`), by way
of `models/squeezenet1.1_nchw/weights` in the repository miaobin/test-data on GitHub, and are under
the [Apache License 2.0]({LICENCE_FILE.name}). Changed here: the tensors bear
torchvision's names, and were rounded from float32 to half precision. They are loaded as float32.
They are other weights than torchvision's own, which are in the catalog as `squeezenet1_1` and need
a download.

`python -m scripts.make_squeezenet` made the file of float32 weights with the SHA-256
`{figures.source_sha256}`.

Compared on {figures.pictures} pictures: with half the digits the five likeliest classes are the
same, in the same order, and no logit is more than {figures.largest_difference:.4f} from what the
float32 weights give.

## Data

ImageNet-1K (ILSVRC 2012): 1.28 million photographs from the web, one label each out of 1,000.
An input is the image with its shorter side scaled to {steps.resize} px, and of that the middle
{steps.crop} × {steps.crop}.

## What it says of the sample photographs

| sample | likeliest class | probability |
|---|---|---|
{rows}

## Limits

- It is small, and wrong on almost every second photograph. The table has examples.
- It always names one of its 1,000 classes: there is none for "none of these".
- There is no class for a person as such (ballplayer, groom and scuba diver come nearest). Someone
  in a picture comes out as what they wear or hold, or as what is not there: the astronaut as a
  stethoscope. It is no tool to judge people by.
- Close-ups of textures come out as objects with such a texture: the brick wall as a guitar.
- It sees the middle of an image alone. What lies at the edge of a wide one is cut off, unless the
  whole image is asked for.
- Drawings and diagrams are not what it learned; ShapesNet knows some.
- Bias: ImageNet's photographs were collected from the web, more than half of them in North America
  and Europe (Shankar et al., 2017), and networks trained on such data recognise everyday things
  from elsewhere less often (de Vries et al., 2019). 118 of the classes are breeds of dogs. About
  6 % of the labels in the validation set are wrong (Northcutt et al., 2021).
- A probability is the softmax of its scores and no promise: large ones are wrong as well.
"""


def main(arguments: list[str] | None = None) -> int:
    """Make the three files; return the process's exit status."""
    parser = argparse.ArgumentParser(description="Make the bundled SqueezeNet's weights and card.")
    parser.add_argument("weights", type=Path, help="SqueezeNet 1.1 in float32, .safetensors")
    parser.add_argument("photos", type=Path, nargs="?", help="a folder of pictures to compare on")
    chosen = parser.parse_args(arguments)
    listed = sorted(chosen.photos.iterdir()) if chosen.photos else []
    further = [path for path in listed if path.suffix in _PICTURES]
    with tempfile.TemporaryDirectory() as folder:
        halved = Path(folder) / SQUEEZENET.weights_file.name
        halve(chosen.weights, halved)
        try:
            figures = measure(chosen.weights, halved, further)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        SQUEEZENET.weights_file.write_bytes(halved.read_bytes())
    text = json.dumps(asdict(figures), indent=2)
    SQUEEZENET.figures_file.write_text(text + "\n", encoding="utf-8")
    CARD_FILE.write_text(card(figures), encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
