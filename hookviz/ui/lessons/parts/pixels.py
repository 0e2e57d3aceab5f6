"""Enlarge a small window of the image until each pixel shows its three numbers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, whole_number
from hookviz.lessons.pictures import picture_of
from hookviz.types import Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.lessons.picks import pick, picked, remember_options, within

AT = "at"
"""Option that the page adds: row and column of the picked pixel."""


def _start_of(scene: LessonScene, options: Options) -> tuple[int, int]:
    """Return row and column of the first pixel, from the options' percentages."""
    height, width = picture_of(scene).shape[:2]
    row = int(options["down"]) * (height - 1) // 100
    return row, int(options["across"]) * (width - 1) // 100


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    picture, tensor = picture_of(scene), scene.model_input.tensor
    row, column = _start_of(scene, options)
    if AT in options:
        at = options[AT].split(",")
        row, column = within((int(at[0]), int(at[1])), picture.shape[:2])
    red, green, blue = picture[row, column].tolist()
    facts: dict[str, Fact] = {
        "width": int(picture.shape[1]),
        "height": int(picture.shape[0]),
        "pixels": int(picture.shape[0] * picture.shape[1]),
        "numbers": int(picture.size),
        "image_width": scene.image.width,
        "image_height": scene.image.height,
        "row": row,
        "column": column,
        "red": red,
        "green": green,
        "blue": blue,
        "levels": 256,
        "most": 255,
    }
    if tensor.ndim == 4 and tensor.shape[1:] == (3, *picture.shape[:2]):
        inputs = tensor[0, :, row, column].tolist()
        facts |= dict(zip(("red_input", "green_input", "blue_input"), inputs, strict=True))
    return facts


PART = Part(
    "pixels",
    mark(
        "The image as the network gets it, and a small window of it, enlarged: each pixel with its "
        "numbers for red, green and blue. A click or the arrow keys move the window."
    ),
    options=(
        Option(
            "window", "8", mark("Pixels on a side of the window, 4 to 12."), whole_number(4, 12)
        ),
        Option(
            "across", "50", mark("Where it begins, in percent from the left."), whole_number(0, 100)
        ),
        Option(
            "down", "50", mark("Where it begins, in percent from the top."), whole_number(0, 100)
        ),
    ),
    facts=_facts,
    link=lambda scene, _options: {"layer": scene.trace.convs[0].name} if scene.trace.convs else {},
)


@dataclass(frozen=True, slots=True)
class PickedPixel:
    """A pixel, and its visible numbers: 0 all three, then red, green or blue."""

    row: int
    column: int
    shade: int


def _show_pixels(
    picture: Pixels,
    picked: PickedPixel,
    side: int,
    on_pick: Callable[[PickedPixel], None],
    *,
    key: str,
) -> None:
    """Show the pixels of a picture ``(H, W, 3)``, and a window of `side` pixels around one.

    `on_pick` gets the picked pixel when the pointer or the keys rest.
    """
    height, width = picture.shape[:2]

    def moved(sent: object) -> None:
        match sent:
            case {"row": int(row), "column": int(column), "shade": int(shade)} if (
                0 <= row < height and 0 <= column < width and 0 <= shade <= 3
            ):
                on_pick(PickedPixel(row, column, shade))

    png = encode_png(picture, compress_level=1)
    says = say(
        "Row {row}, column {column}: red {red}, green {green}, blue {blue}",
        **{each: f"{{{each}}}" for each in ("row", "column", "red", "green", "blue")},
    )
    data = {
        "name": f"{hashlib.blake2b(png, digest_size=8).hexdigest()} {side}",
        "height": height,
        "width": width,
        "row": picked.row,
        "column": picked.column,
        "shade": picked.shade,
        "side": side,
        "words": {
            "label": say("The image and a window of it, enlarged"),
            "keys": say("The image: the arrow keys move the window, with Shift by its width."),
            "window": say("The window, pixel by pixel."),
            "shades": say("Which numbers are shown"),
            "shade": [say("All three"), say("Red"), say("Green"), say("Blue")],
            "says": says,
        },
    }
    mount("pixels", key, data, png, moved=moved)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw image and window; the link has the picked pixel, which the text follows."""
    start, size = _start_of(scene, options), picture_of(scene).shape[:2]
    row, column = within(picked(key, "pixel", start), size)
    shade = min(max(0, picked(key, "shade", 0)), 3)
    remember_options(key, {AT: f"{row},{column}"}, {AT: f"{start[0]},{start[1]}"})

    def take(new: PickedPixel) -> None:
        pick(key, "pixel", (new.row, new.column))
        pick(key, "shade", new.shade or "")

    _show_pixels(
        picture_of(scene),
        PickedPixel(row, column, shade),
        int(options["window"]),
        take,
        key=f"pixels-{key}",
    )
