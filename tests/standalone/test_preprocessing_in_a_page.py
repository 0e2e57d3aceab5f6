"""A page alone makes of an image the very input that Python makes of it: tensor, picture, crop."""

import base64
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hookviz.images.preprocess import prepare
from hookviz.images.reading import read
from hookviz.images.samples import samples
from hookviz.standalone.client_page import CLIENT
from hookviz.types import Preprocess
from tests.node import of_client

pytest.importorskip("PIL", "13.0", "before, Pillow rounded between two passes in another order")

MODULE = str(CLIENT / "preprocessing.js")
TEXT = "(values) => Buffer.from(new Uint8Array(values.buffer)).toString('base64')"
BYTES = "(text) => Uint8ClampedArray.from(Buffer.from(text, 'base64'))"
SIZES = ((1, 1), (3, 500), (500, 3), (97, 131), (224, 224), (64, 64), (1000, 700), (640, 300))
SIDES = ((256, 224), (224, 224), (128, 128), (100, 131))  # the last is padded with black
COLOURS: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((0.4488,), (0.2661,)),
)
FILTERS = ("bilinear", "bicubic")


def random_levels(seed: int, *shape: int) -> NDArray[np.uint8]:
    """Noise, half of it black or white, where bicubic overshoots."""
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 384, shape).clip(0, 255).astype(np.uint8)


def opaque(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.dstack([levels, np.full(levels.shape[:2], 255, np.uint8)])


def text_of(levels: NDArray[np.uint8]) -> str:
    return base64.b64encode(levels.tobytes()).decode()


def array_of(text: str, kind: Any) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), kind)


def compare(images: list[NDArray[np.uint8]], steps: list[Preprocess]) -> None:
    """Compare the inputs of images in RGBA, by each of the steps, with Python's."""
    results = of_client(
        MODULE,
        f"images.flatMap(([text, size]) => {{ const rgba = ({BYTES})(text);"
        " return steps.map((each) => { const result = it.prepared(rgba, size, each);"
        f" return {{ ...result, input: ({TEXT})(result.input),"
        f" picture: ({TEXT})(result.picture) }}; }}); }})",
        images=[(text_of(image), image.shape[:2]) for image in images],
        steps=[asdict(each) for each in steps],
    )
    cases = [(image, each) for image in images for each in steps]
    for (image, each), result in zip(cases, results, strict=True):
        expected = prepare(read(Image.fromarray(image)), each)
        assert expected.picture is not None
        assert expected.crop is not None
        case = f"{image.shape}, {each}"
        assert (1, *result["shape"]) == expected.tensor.shape, case
        picture = array_of(result["picture"], np.uint8).reshape(expected.picture.shape)
        np.testing.assert_array_equal(picture, expected.picture, case)
        bits = array_of(result["input"], np.uint32).reshape(expected.tensor.shape)
        np.testing.assert_array_equal(bits, expected.tensor.numpy().view(np.uint32), case)
        assert result["crop"] == asdict(expected.crop), case


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize(("mean", "std"), COLOURS, ids=["colour", "grey"])
def test_an_input_is_pythons_to_the_bit(
    mean: tuple[float, ...], std: tuple[float, ...], interpolation: str
) -> None:
    images = [opaque(random_levels(seed, *size, 3)) for seed, size in enumerate(SIZES)]
    steps = [Preprocess(*sides, mean, std, interpolation) for sides in SIDES]
    compare(images, steps)


def test_a_photograph_and_what_shines_through_are_the_same() -> None:
    with Image.open(next(each for each in samples() if each.name == "cat").path) as photograph:
        photograph_levels = np.asarray(photograph.convert("RGB"))
    through = random_levels(1, 90, 120, 4)
    steps = [
        Preprocess(256, 224, mean, std, interpolation)
        for mean, std in COLOURS
        for interpolation in FILTERS
    ]
    compare([opaque(photograph_levels), through], steps)


@pytest.mark.parametrize("interpolation", FILTERS)
def test_a_strip_too_long_to_be_resized_as_a_whole_is_the_same(interpolation: str) -> None:
    shapes = ((1, 4000), (4000, 1), (3, 3001), (2, 1999), (1, 1_000_001))
    images = [opaque(random_levels(seed, *size, 3)) for seed, size in enumerate(shapes)]
    steps = [Preprocess(side, 224, interpolation=interpolation) for side in (256, 1009, 200)]
    compare(images, steps)


@pytest.mark.parametrize("interpolation", FILTERS)
def test_a_size_is_pillows_to_the_bit(interpolation: str) -> None:
    # Rows come first where more than twice as many rows as columns go; 101 × 30 to 61 × 10 is even.
    sizes = [(height, width) for height in (1, 7, 40, 60, 61, 101) for width in (1, 10, 30, 64)]
    images = [random_levels(0, 40, 64, 3), random_levels(1, 101, 30, 1)]
    results = of_client(
        MODULE,
        f"images.flatMap(([text, shape]) => sizes.map((size) => ({TEXT})("
        f"it.resized(({BYTES})(text), shape, size, filter))))",
        images=[(text_of(image), image.shape) for image in images],
        sizes=sizes,
        filter=interpolation,
    )
    cases = [(image, size) for image in images for size in sizes]
    for (image, (height, width)), result in zip(cases, results, strict=True):
        expected = Image.fromarray(image.squeeze()).resize(
            (width, height), Image.Resampling[interpolation.upper()]
        )
        levels = array_of(result, np.uint8).reshape(np.asarray(expected).shape)
        np.testing.assert_array_equal(levels, np.asarray(expected), f"{(height, width)}")
