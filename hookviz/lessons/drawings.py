"""Draw the data of the networks for drawings: shapes and textures of every colour and size.

A picture follows from its category, its seed and its size alone, so nothing needs to be stored
and the order of drawing does not matter.
"""

import colorsys
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from hookviz.models.shapesnet import CATEGORIES, INPUT_SIZE, SHAPES

Field = NDArray[np.float32]
Polygon = NDArray[np.float64]
Figure = list[tuple[Polygon, bool]]  # painted in order; False cuts a hole

TRAIN_SEEDS = range(10_000_000)
TEST_SEEDS = range(10_000_000, 20_000_000)
HARD_SEEDS = range(20_000_000, 30_000_000)
SAMPLE_SEEDS = range(30_000_000, 40_000_000)

_SUPERSAMPLE = 3  # polygons are drawn this much larger, then averaged: smooth edges


def draw(
    category: str, seed: int, size: int = INPUT_SIZE, *, degradation: float = 0.0
) -> Image.Image:
    """Draw an RGB picture of `category`, `size` × `size` pixels.

    `degradation` from 0 to 1 adds clutter, occlusion, blur and noise.

    Raises:
        ValueError: there is no such category.
    """
    rng = np.random.default_rng((seed, CATEGORIES.index(category)))
    ground, paint = (_surface(rng, colour, size) for colour in _two_colours(rng))
    mask = _mask(category, rng, size)
    if category == "rainbow":
        paint = _rainbow(rng, size)
    if category in SHAPES and rng.random() < 0.3:
        ground = ground * _shadow(rng, mask)[..., None]
    if degradation:
        ground = _scatter(rng, ground, round(10 * degradation), (0.03, 0.09))
    picture = ground + (paint - ground) * mask[..., None]
    if degradation:
        picture = _scatter(rng, picture, int(rng.integers(5)), (0.05, 0.16))
    picture = picture * _light(rng, size)[..., None]
    blur = rng.uniform(0, 0.008 + 0.008 * degradation) * size
    picture = _pixels(_image(picture).filter(ImageFilter.GaussianBlur(blur)))
    grain = rng.uniform(0, 0.03) + rng.uniform(0.3, 1) * 0.15 * degradation
    picture = picture + grain * rng.standard_normal(picture.shape, dtype=np.float32)
    return _image(picture)


def _image(field: Field) -> Image.Image:
    """Convert values in 0…1, ``(H, W)`` or ``(H, W, 3)``, into a Pillow image."""
    return Image.fromarray((field.clip(0, 1) * 255 + 0.5).astype(np.uint8))


def _pixels(image: Image.Image) -> Field:
    """Convert a Pillow image into values in 0…1, ``(H, W)`` or ``(H, W, 3)``."""
    return np.asarray(image, dtype=np.float32) / np.float32(255)


# Colour and light


def _colour(rng: Generator) -> Field:
    saturation = rng.choice([0.0, rng.uniform(0.2, 1), 1.0], p=[0.12, 0.68, 0.2])
    return np.array(colorsys.hsv_to_rgb(rng.random(), saturation, rng.uniform(0.1, 1)), np.float32)


def _two_colours(rng: Generator) -> tuple[Field, Field]:
    """Choose two colours that can be told apart, a third of them by hue alone.

    Pairs of equal brightness are what makes a network learn colour detectors in its first layer.
    """
    by_hue = rng.random() < 0.35
    while True:
        first, second = _colour(rng), _colour(rng)
        if by_hue:
            second = (second * (_brightness(first) / _brightness(second))).clip(0, 1)
        if np.linalg.norm(first - second) > 0.4:
            return first, second


def _brightness(colour: Field) -> float:
    return float(colour @ np.array([0.299, 0.587, 0.114], np.float32)) + 1e-3


def _ramp(rng: Generator, size: int) -> Field:
    """Make a ramp from 0 to 1: straight in some direction, or outwards from some point."""
    down, right = _places(size)
    if rng.random() < 0.3:
        field = np.hypot(down - rng.uniform(-0.4, 0.4), right - rng.uniform(-0.4, 0.4))
    else:
        angle = rng.uniform(0, 2 * np.pi)
        field = np.sin(angle) * down + np.cos(angle) * right
    field = field - field.min()
    ramp: Field = (field / field.max()).astype(np.float32)
    return ramp


@cache
def _places(size: int) -> tuple[Field, Field]:
    """Return each pixel's distance from the middle, down and right, in sides of the picture."""
    steps = ((np.arange(size) + 0.5) / size - 0.5).astype(np.float32)
    return steps[:, None], steps[None, :]


def _light(rng: Generator, size: int) -> Field:
    """Make a factor per pixel, as from a lamp at one side or above the middle."""
    darkest = rng.uniform(0.45, 1)
    return rng.uniform(0.9, 1.1) * (darkest + (1 - darkest) * _ramp(rng, size))


def _surface(rng: Generator, colour: Field, size: int) -> Field:
    """Make a surface of `colour`: plain, a slight gradient, or soft blotches: ``(H, W, 3)``."""
    kind = rng.choice(["plain", "gradient", "blotches"])
    field = np.broadcast_to(colour, (size, size, 3))
    if kind == "gradient":
        change = rng.uniform(-0.2, 0.2, 3).astype(np.float32)
        field = field + change * (_ramp(rng, size)[..., None] - 0.5)
    elif kind == "blotches":
        coarse = rng.integers(0, 256, (rng.integers(3, 7), rng.integers(3, 7), 3), dtype=np.uint8)
        soft = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
        field = field + rng.uniform(0.05, 0.2) * (_pixels(soft) - 0.5)
    return field


def _rainbow(rng: Generator, size: int) -> Field:
    """Make all hues one after the other, smooth or in bands: ``(H, W, 3)``."""
    hue = _ramp(rng, size) * rng.uniform(0.8, 1.6)
    if rng.random() < 0.5:
        bands = rng.integers(6, 10)
        hue = np.floor(hue * bands) / bands
    hsv = np.empty((size, size, 3), np.uint8)
    hsv[..., 0] = ((hue + rng.random()) % 1 * 255).astype(np.uint8)
    hsv[..., 1:] = rng.integers(140, 256, 2)
    return _pixels(Image.fromarray(hsv, "HSV").convert("RGB"))


# Where the paint goes


def _mask(category: str, rng: Generator, size: int) -> Field:
    """Return how much of each pixel is painted, 0…1, ``(H, W)``."""
    if category == "gradient":
        return _ramp(rng, size)
    if category == "rainbow":
        return np.ones((size, size), np.float32)
    figure = _FIGURES[category](rng)
    if category in SHAPES:
        figure = _place(rng, figure)
    return _fill(figure, size)


def _fill(figure: Figure, size: int) -> Field:
    large = size * _SUPERSAMPLE
    canvas = Image.new("L", (large, large))
    pen = ImageDraw.Draw(canvas)
    for polygon, painted in figure:
        corners = (polygon + 0.5) * large
        pen.polygon(list(map(tuple, corners.tolist())), fill=255 if painted else 0)
    return _pixels(canvas.reduce(_SUPERSAMPLE))


def _place(rng: Generator, figure: Figure) -> Figure:
    """Stretch, turn, scale and move a shape of radius 1, all of it in the picture."""
    radius = rng.uniform(0.17, 0.45)
    stretch = rng.uniform(0.8, 1.25) ** 0.5
    turn = _turn(rng.uniform(0, 360))
    room = 0.5 - radius
    middle = rng.uniform(-room, room, 2)
    return [
        (polygon * (radius * stretch, radius / stretch) @ turn + middle, painted)
        for polygon, painted in figure
    ]


def _shadow(rng: Generator, mask: Field) -> Field:
    """Make a factor per pixel that darkens the ground beside a shape, ``(H, W)``."""
    size = len(mask)
    offset = rng.uniform(-0.06, 0.06, 2) * size
    blurred = _image(mask).filter(ImageFilter.GaussianBlur(rng.uniform(0.005, 0.03) * size))
    matrix = (1, 0, offset[0], 0, 1, offset[1])
    return 1 - rng.uniform(0.2, 0.6) * _pixels(
        blurred.transform(blurred.size, Image.Transform.AFFINE, matrix)
    )


def _scatter(rng: Generator, picture: Field, count: int, radii: tuple[float, float]) -> Field:
    """Strew `count` scraps over the picture: polygons, discs and sticks."""
    for _ in range(count):
        outline = _ngon(rng.choice([3, 4, 5, 24])) * (rng.uniform(*radii), rng.uniform(*radii))
        if rng.random() < 0.3:
            outline = outline * (3, 0.3)
        scrap = outline @ _turn(rng.uniform(0, 360)) + rng.uniform(-0.5, 0.5, 2)
        mask = _fill([(scrap, True)], len(picture))[..., None]
        picture = picture + (_colour(rng) - picture) * mask
    return picture


# Outlines: a shape has radius 1; a texture covers the picture, whose side is 1. y points down.


def _turn(degrees: float) -> Polygon:
    """Return the matrix that turns row vectors by `degrees`, clockwise on the screen."""
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.array([[cos, sin], [-sin, cos]])


def _around(radii: Polygon) -> Polygon:
    """Return corners at those distances from the middle, at equal angles."""
    angles = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii[:, None]


def _ngon(corners: int) -> Polygon:
    return _around(np.ones(corners))


def _regular(_rng: Generator, corners: int) -> Figure:
    return [(_ngon(corners), True)]


def _star(rng: Generator) -> Figure:
    return [(_around(np.tile([1, rng.uniform(0.36, 0.5)], 5)), True)]


def _cross(rng: Generator) -> Figure:
    arm = rng.uniform(0.22, 0.36)
    bar = np.array([[-1, -arm], [1, -arm], [1, arm], [-1, arm]])
    return [(bar, True), (bar @ _turn(90), True)]


def _ring(rng: Generator) -> Figure:
    return [(_ngon(64), True), (_ngon(64) * rng.uniform(0.45, 0.75), False)]


def _heart(_rng: Generator) -> Figure:
    t = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    right = 16 * np.sin(t) ** 3
    up = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return [(np.stack([right, -up - 2], axis=1) / 16, True)]


def _arrow(rng: Generator) -> Figure:
    shaft, wings, neck = rng.uniform(0.12, 0.25), rng.uniform(0.5, 0.75), rng.uniform(0, 0.3)
    half = np.array([[-1, shaft], [neck, shaft], [neck, wings], [1, 0]])
    return [(np.concatenate([half, half[2::-1] * (1, -1)]), True)]


def _crescent(rng: Generator) -> Figure:
    bite = _moved(_ngon(64) * rng.uniform(0.8, 1), rng.uniform(0.4, 0.6), 0)
    return [(_ngon(64), True), (bite, False)]


def _flower(rng: Generator) -> Figure:
    angles = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    petals = 0.72 + 0.28 * np.cos(rng.integers(5, 8) * angles)
    return [(_around(petals), True), (_ngon(32) * rng.uniform(0.15, 0.3), False)]


_REACH = 0.75  # a texture turned by any angle still covers the picture


def _centres(rng: Generator, pitch: float) -> Polygon:
    """Return positions a `pitch` apart across the picture, at a random phase."""
    first = -_REACH - pitch * (1 + rng.random())
    return first + pitch * np.arange(int((_REACH - first) / pitch) + 2, dtype=np.float64)


def _box(x: float, y: float, width: float, height: float) -> Polygon:
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]])
    return _moved(corners, x, y)


def _moved(polygon: Polygon, right: float, down: float) -> Polygon:
    moved: Polygon = polygon + np.array([right, down])
    return moved


def _turned(figure: list[Polygon], degrees: float) -> Figure:
    return [(polygon @ _turn(degrees), True) for polygon in figure]


def _bars(rng: Generator, pitch: float, share: float) -> list[Polygon]:
    return [_box(-_REACH, y, 2 * _REACH, share * pitch) for y in _centres(rng, pitch)]


def _stripes(rng: Generator, degrees: float) -> Figure:
    bars = _bars(rng, rng.uniform(0.06, 0.28), rng.uniform(0.3, 0.7))
    return _turned(bars, degrees + rng.uniform(-14, 14))


def _checks(rng: Generator) -> Figure:
    side = rng.uniform(0.06, 0.22)
    columns, rows = _centres(rng, side), _centres(rng, side)
    cells = [
        _box(x, y, side, side)
        for row, y in enumerate(rows)
        for column, x in enumerate(columns)
        if (row + column) % 2
    ]
    return _turned(cells, rng.uniform(0, 90))


def _dots(rng: Generator) -> Figure:
    pitch = rng.uniform(0.1, 0.28)
    disc = _ngon(24) * pitch * rng.uniform(0.2, 0.38)
    shift = rng.choice([0, 0.5]) * pitch  # straight rows, or every second one between
    columns, rows = _centres(rng, pitch), _centres(rng, pitch)
    discs = [_moved(disc, x + shift * (row % 2), y) for row, y in enumerate(rows) for x in columns]
    return _turned(discs, rng.uniform(0, 90))


def _waves(rng: Generator) -> Figure:
    pitch = rng.uniform(0.1, 0.26)
    length = rng.uniform(0.15, 0.4)
    height = length * rng.uniform(0.18, 0.35)
    x = np.linspace(-_REACH, _REACH, 80)
    y = height * np.sin(2 * np.pi * (x / length + rng.random()))
    share = rng.uniform(0.35, 0.6)
    there, back = np.stack([x, y], axis=1), np.stack([x, y + share * pitch], axis=1)[::-1]
    band = np.concatenate([there, back])
    bands = [_moved(band, 0, y) for y in _centres(rng, pitch)]
    return _turned(bands, rng.uniform(0, 180))


def _grid(rng: Generator) -> Figure:
    pitch, share = rng.uniform(0.1, 0.28), rng.uniform(0.12, 0.25)
    degrees = rng.uniform(0, 90)
    bars = _bars(rng, pitch, share)
    return _turned(bars, degrees) + _turned(_bars(rng, pitch, share), degrees + 90)


_FIGURES: dict[str, Callable[[Generator], Figure]] = {
    "circle": partial(_regular, corners=64),
    "triangle": partial(_regular, corners=3),
    "square": partial(_regular, corners=4),
    "star": _star,
    "cross": _cross,
    "ring": _ring,
    "heart": _heart,
    "arrow": _arrow,
    "crescent": _crescent,
    "flower": _flower,
    "horizontal stripes": partial(_stripes, degrees=0),
    "vertical stripes": partial(_stripes, degrees=90),
    "rising stripes": partial(_stripes, degrees=-45),
    "falling stripes": partial(_stripes, degrees=45),
    "checks": _checks,
    "dots": _dots,
    "waves": _waves,
    "grid": _grid,
}
