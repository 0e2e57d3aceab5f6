"""Show a picture with a small window of it, enlarged, and the numbers of each pixel in it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.types import Pixels
from hookviz.ui.components.files import show


@dataclass(frozen=True, slots=True)
class PickedPixel:
    """A pixel, and which of its numbers are shown: 0 all three, then red, green or blue."""

    row: int
    column: int
    shade: int


def show_pixels(
    picture: Pixels,
    picked: PickedPixel,
    side: int,
    on_pick: Callable[[PickedPixel], None],
    *,
    key: str,
) -> None:
    """Show the pixels of a picture ``(H, W, 3)``, and its window of `side` pixels around one.

    What is picked is seen at once, and told to `on_pick` when the pointer or the keys rest.
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
    show("pixels", key, data, png, moved=moved)
