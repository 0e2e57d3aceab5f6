"""Show a picture with a small window of it, enlarged, and the numbers of each pixel in it."""

import hashlib

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.types import Pixels
from hookviz.ui.components.files import show


def show_pixels(picture: Pixels, start: tuple[int, int], side: int, *, key: str) -> None:
    """Show the pixels of a picture ``(H, W, 3)``, its window of `side` pixels around `start`."""
    png = encode_png(picture, compress_level=1)
    name = f"{hashlib.blake2b(png, digest_size=8).hexdigest()} {start} {side}"
    says = say(
        "Row {row}, column {column}: red {red}, green {green}, blue {blue}",
        **{each: f"{{{each}}}" for each in ("row", "column", "red", "green", "blue")},
    )
    data = {
        "name": name,
        "height": picture.shape[0],
        "width": picture.shape[1],
        "row": start[0],
        "column": start[1],
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
    show("pixels", key, data, png)
