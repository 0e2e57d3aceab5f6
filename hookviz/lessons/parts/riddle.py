"""Show an image as numbers alone, to be guessed, and uncover it a little at a time."""

from collections.abc import Mapping

import numpy as np

from hookviz.images.samples import Sample, samples
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, whole_number
from hookviz.lessons.pictures import grey_of, picture_of
from hookviz.types import Pixels

UNCOVERED = "uncovered"
"""Among the options how far the image is uncovered, 0 to `LAST`; a lesson's file has none."""
NUMBERS, GREYS, FINER, GREY, COLOURS = range(5)
LAST = COLOURS
"""The stage at which all of it is seen."""
_FINER = 2  # times as many on a side, at that stage
_OFFERED = (0, 3, 5, 9)  # names that are offered: so many samples after the one that is shown


def levels(scene: LessonScene, side: int) -> list[list[int]]:
    """Return the image's brightness in whole numbers, 0 black to 255 white, ``(rows, columns)``.

    Args:
        scene: whose image.
        side: numbers on its longer side.
    """
    rows: list[list[int]] = (grey_of(scene, side) * 255).round().astype(int).tolist()
    return rows


def levels_at(scene: LessonScene, stage: int, side: int) -> list[list[int]]:
    """Return the `levels` that a stage shows; none where it shows the image's own pixels."""
    if stage >= GREY:
        return []
    return levels(scene, side * (_FINER if stage == FINER else 1))


def picture_at(scene: LessonScene, stage: int) -> Pixels | None:
    """Return the image as a stage shows it, RGB uint8 ``(H, W, 3)``; None before its pixels are."""
    if stage < GREY:
        return None
    picture = picture_of(scene)
    if stage == COLOURS:
        return picture
    grey = np.array(levels(scene, max(picture.shape[:2])), np.uint8)
    return grey[..., None].repeat(3, -1)


def count(scene: LessonScene, stage: int, side: int) -> int:
    """Return how many numbers are seen at a stage."""
    picture = picture_of(scene)
    if stage >= GREY:
        return int(picture.size if stage == COLOURS else picture.shape[0] * picture.shape[1])
    return sum(map(len, levels_at(scene, stage, side)))


def offered(name: str) -> tuple[Sample, ...]:
    """Return the sample of that name among three others, in an order that tells nothing."""
    known = samples()
    at = next((index for index, each in enumerate(known) if each.name == name), 0)
    shown = [known[(at + after) % len(known)] for after in _OFFERED]
    return tuple(sorted(shown, key=lambda each: each.name))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    side, stage = int(options["side"]), int(options.get(UNCOVERED, NUMBERS))
    grey = levels(scene, side)
    return {
        "rows": len(grey),
        "columns": len(grey[0]),
        "given": count(scene, NUMBERS, side),
        "seen": count(scene, stage, side),
        "numbers": count(scene, COLOURS, side),
        "told": _told(stage, count(scene, stage, side)),
        "lowest": min(map(min, grey)),
        "highest": max(map(max, grey)),
        "most": 255,
    }


def _told(stage: int, seen: int) -> str:
    """Return what is seen at a stage, in words."""
    words = {
        NUMBERS: mark("You see {seen:,} numbers, and no picture."),
        GREYS: mark("You see the same {seen:,} numbers, each painted as a grey."),
        FINER: mark("You see {seen:,} numbers, four times as many, each as a grey."),
        GREY: mark("You see {seen:,} numbers, one for each pixel."),
        COLOURS: mark("You see {seen:,} numbers, three for each pixel: red, green and blue."),
    }
    return say(words[stage], seen=seen)


PART = Part(
    "riddle",
    mark(
        "The image as numbers alone, without any colour, to be guessed among four names; it is "
        "uncovered in stages, from greys to all of its pixels."
    ),
    options=(
        Option(
            "side", "16", mark("Numbers on its longer side at first, 8 to 20."), whole_number(8, 20)
        ),
    ),
    facts=_facts,
)
