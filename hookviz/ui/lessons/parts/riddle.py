"""Show an image as numbers alone, to be guessed, and uncover it a little at a time.

The page draws the numbers, the names to guess among, and a button that uncovers more.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import streamlit as st

from hookviz.drawing.pictures import encode_png
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, whole_number
from hookviz.lessons.pictures import grey_of, picture_of
from hookviz.types import Pixels
from hookviz.ui.components.files import each_once, mount
from hookviz.ui.lessons.picks import pick, picked, remember_shown
from hookviz.ui.state import choose_sample, chosen_sample, shows_sample

UNCOVERED = "uncovered"
"""Among the options how far the image is uncovered, 0 to `_LAST`; a lesson's file has none."""
NUMBERS, GREYS, FINER, GREY, COLOURS = range(5)
_LAST = COLOURS
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


def _count(scene: LessonScene, stage: int, side: int) -> int:
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
        "given": _count(scene, NUMBERS, side),
        "seen": _count(scene, stage, side),
        "numbers": _count(scene, COLOURS, side),
        "told": _told(stage, _count(scene, stage, side)),
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


@dataclass(frozen=True, slots=True)
class Guess:
    """A name that can be guessed.

    Attributes:
        name: of the image, for the program.
        title: of the image, for people.
        tried: whether it was guessed.
        right: whether it is the image that is shown.
    """

    name: str
    title: str
    tried: bool
    right: bool


@dataclass(frozen=True, eq=False, slots=True)
class RiddleView:
    """What is seen of a riddle.

    Attributes:
        stage: how far it is uncovered.
        levels: the numbers that are seen, 0 to 255; empty where all pixels are.
        picture: the image as it is to be seen, RGB uint8 ``(H, W, 3)``; None before that.
        guesses: names to guess among; none for an image without names.
        says: what came of the guesses.
        has_another: whether another riddle can be asked for.
    """

    stage: int
    levels: Sequence[Sequence[int]]
    picture: Pixels | None
    guesses: Sequence[Guess]
    says: str
    has_another: bool


def _show_riddle(
    view: RiddleView,
    on_uncover: Callable[[int], None],
    on_guess: Callable[[str], None],
    on_another: Callable[[], None],
    *,
    key: str,
) -> None:
    """Show the riddle. The image's own pixels leave the server only where they are to be seen.

    Each guess counts, however quickly the next one follows.

    Args:
        view: what is seen.
        on_uncover: gets the stage that is asked for.
        on_guess: gets the name that is guessed.
        on_another: is called where another riddle is asked for.
        key: of the component.
    """
    names = {each.name for each in view.guesses if not each.tried}

    def did(sent: object) -> None:
        match sent:
            case {"stage": int(stage)} if NUMBERS <= stage <= _LAST:
                on_uncover(stage)
            case {"guess": str(name)} if name in names and view.stage < _LAST:
                on_guess(name)
            case {"another": True} if view.has_another:
                on_another()

    is_over = view.stage == _LAST
    data = {
        "stage": view.stage,
        "levels": view.levels,
        "guesses": [
            # which one is right stays here until it is found
            asdict(each) if each.tried or is_over else {**asdict(each), "right": False}
            for each in view.guesses
        ],
        "says": view.says,
        "another": say("Another riddle") if view.has_another and is_over else "",
        "on": {
            NUMBERS: say("Paint each number as a grey"),
            GREYS: say("Four times as many numbers"),
            FINER: say("A number for each pixel"),
            GREY: say("Three numbers for each pixel: colours"),
        }.get(view.stage, ""),
        "again": say("Cover it again") if view.stage > NUMBERS else "",
        "words": {
            "label": say("An image as numbers"),
            "guesses": say("What is it?"),
            "numbers": say(
                "{rows} rows of {columns} numbers, from {low} to {high}.",
                rows=len(view.levels),
                columns=len(view.levels[0]) if view.levels else 0,
                low=min(map(min, view.levels), default=0),
                high=max(map(max, view.levels), default=0),
            ),
            "picture": say("The image, whole.") if view.stage == COLOURS else say("It in grey."),
        },
    }
    png = b"" if view.picture is None else encode_png(view.picture, compress_level=1)
    mount("riddle", key, data, png, did=each_once(key, did))


_KEPT = re.compile(r"([a-z-]{1,40}) ([0-4]) ([0-4])((?: [a-z-]{1,40}){0,4})")
_OWN = "own"  # what the link calls anybody's own image, which has no names to guess among


@dataclass(frozen=True, slots=True)
class _Guessing:
    """How far an image is uncovered, at which stage it was guessed last, and what was guessed."""

    stage: int = NUMBERS
    guessed_at: int = NUMBERS
    guesses: tuple[str, ...] = ()


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the riddle; the link keeps how far it is uncovered and what was guessed."""
    image = chosen_sample().name if shows_sample() else _OWN
    so_far, side = _so_far(key, image), int(options["side"])
    names = offered(image) if image != _OWN else ()
    remember_shown(key, {UNCOVERED: str(so_far.stage)}, {UNCOVERED: str(NUMBERS)})

    def keep(stage: int, guessed_at: int, *guesses: str) -> None:
        pick(key, "riddle", " ".join((image, str(stage), str(guessed_at), *guesses)))

    # What is done counts from how far it is by now: a quick click comes before the one before it
    # is drawn.
    def uncover(stage: int) -> None:
        now = _so_far(key, image)
        keep(stage, now.guessed_at, *now.guesses)

    def guess(name: str) -> None:
        now = _so_far(key, image)
        if image in now.guesses or name in now.guesses:
            return
        stage = _LAST if name == image else now.stage
        keep(stage, now.stage, *now.guesses, name)

    def another() -> None:
        known = [each.name for each in samples()]
        at = known.index(image) if image in known else -1
        pick(key, "riddle", "")
        choose_sample(known[(at + 4) % len(known)])  # so that those beside it look otherwise

    view = RiddleView(
        stage=so_far.stage,
        levels=levels_at(scene, so_far.stage, side),
        picture=picture_at(scene, so_far.stage),
        guesses=[
            Guess(each.name, say(each.title), each.name in so_far.guesses, each.name == image)
            for each in names
        ],
        says=_says(scene, so_far, image, side),
        has_another=shows_sample(),
    )
    _show_riddle(view, uncover, guess, another, key=f"riddle-{key}")
    is_open = "hv-riddle-open" if so_far.stage < _LAST else ""
    st.html(f'<span class="{is_open}"></span>')  # the sidebar shows no thumbnail of it meanwhile


def _so_far(key: str, image: str) -> _Guessing:
    found = _KEPT.fullmatch(picked(key, "riddle", ""))
    if found is None or found[1] != image:  # another image is another riddle
        return _Guessing()
    return _Guessing(int(found[2]), int(found[3]), tuple(found[4].split()))


def _says(scene: LessonScene, so_far: _Guessing, image: str, side: int) -> str:
    """Return what came of the guesses, in words."""
    whole = _count(scene, _LAST, side)
    if image in so_far.guesses:
        return say(
            "Right: {title}. You needed {few:,} of {total:,} numbers. Guesses: {tries}.",
            title=say(chosen_sample().title),
            few=_count(scene, so_far.guessed_at, side),
            total=whole,
            tries=len(so_far.guesses),
        )
    if so_far.stage == _LAST:
        if image == _OWN:
            return say("All {total:,} numbers are uncovered.", total=whole)
        title = say(chosen_sample().title)
        return say("It is: {title}. All {total:,} numbers are uncovered.", title=title, total=whole)
    if so_far.guesses:
        titles = {each.name: say(each.title) for each in samples()}
        return say("Not it: {title}.", title=titles.get(so_far.guesses[-1], so_far.guesses[-1]))
    return ""
