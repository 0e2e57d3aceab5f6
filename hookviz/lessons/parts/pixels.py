"""Enlarge a small window of the image until each pixel shows its three numbers."""

from collections.abc import Mapping

from hookviz.language.saying import mark
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, whole_number
from hookviz.lessons.pictures import picture_of

AT = "at"
"""Among the options the pixel that is picked, as row and column; a lesson's file has none."""


def start_of(scene: LessonScene, options: Options) -> tuple[int, int]:
    """Return row and column of the pixel picked at first, from 0: the options are percentages."""
    height, width = picture_of(scene).shape[:2]
    row = int(options["down"]) * (height - 1) // 100
    return row, int(options["across"]) * (width - 1) // 100


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    picture, tensor = picture_of(scene), scene.model_input.tensor
    row, column = _picked(scene, options)
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


def _picked(scene: LessonScene, options: Options) -> tuple[int, int]:
    """Return row and column of the pixel that is picked by now."""
    if AT not in options:
        return start_of(scene, options)
    row, column = (int(each) for each in options[AT].split(","))
    return within(scene, row, column)


def within(scene: LessonScene, row: int, column: int) -> tuple[int, int]:
    """Return the pixel in that row and column, or the nearest that the picture has."""
    height, width = picture_of(scene).shape[:2]
    return min(max(0, row), height - 1), min(max(0, column), width - 1)


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
