"""Show an image as numbers alone, to be guessed, and uncover it in stages."""

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
from hookviz.ui.lessons.picks import pick, picked, remember_options
from hookviz.ui.state import choose_sample, chosen_sample, shows_sample

UNCOVERED = "uncovered"
"""Option that the page adds: the stage, from `NUMBERS` to `COLOURS`."""
NUMBERS, GREYS, FINER, GREY, COLOURS = _STAGES = range(5)
_FINER = 2  # times as many numbers on a side
_OFFERED = (0, 3, 5, 9)  # positions of the offered samples after the right one


def levels(scene: LessonScene, side: int) -> list[list[int]]:
    """Return the image's brightness in whole numbers, 0 black to 255 white, ``(rows, columns)``.

    Args:
        scene: the image.
        side: numbers on its longer side.
    """
    rows: list[list[int]] = (grey_of(scene, side) * 255).round().astype(int).tolist()
    return rows


def levels_at(scene: LessonScene, stage: int, side: int) -> list[list[int]]:
    """Return the `levels` of a stage; none for a stage with the image's own pixels."""
    if stage >= GREY:
        return []
    return levels(scene, side * (_FINER if stage == FINER else 1))


def picture_at(scene: LessonScene, stage: int) -> Pixels | None:
    """Return the image of a stage, RGB uint8 ``(H, W, 3)``; None for a stage without its pixels."""
    if stage < GREY:
        return None
    picture = picture_of(scene)
    if stage == COLOURS:
        return picture
    grey = np.array(levels(scene, max(picture.shape[:2])), np.uint8)
    return grey[..., None].repeat(3, -1)


def _count(scene: LessonScene, stage: int, side: int) -> int:
    """Return the number of visible numbers at a stage."""
    picture = picture_of(scene)
    if stage >= GREY:
        return int(picture.size if stage == COLOURS else picture.shape[0] * picture.shape[1])
    return sum(map(len, levels_at(scene, stage, side)))


def offered(name: str) -> tuple[Sample, ...]:
    """Return the sample of a name among three others, in the order of their names."""
    known = samples()
    at = next((index for index, each in enumerate(known) if each.name == name), 0)
    chosen = [known[(at + after) % len(known)] for after in _OFFERED]
    return tuple(sorted(chosen, key=lambda each: each.name))


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    side, stage = int(options["side"]), int(options.get(UNCOVERED, NUMBERS))
    grey = levels(scene, side)
    return {
        "rows": len(grey),
        "columns": len(grey[0]),
        "given": _count(scene, NUMBERS, side),
        "seen": _count(scene, stage, side),
        "numbers": _count(scene, COLOURS, side),
        "told": _about_stage(stage, _count(scene, stage, side)),
        "lowest": min(map(min, grey)),
        "highest": max(map(max, grey)),
        "most": 255,
    }


def _about_stage(stage: int, count: int) -> str:
    """Describe a stage with that many visible numbers."""
    words = {
        NUMBERS: mark("You see {seen:,} numbers, and no picture."),
        GREYS: mark("You see the same {seen:,} numbers, each painted as a grey."),
        FINER: mark("You see {seen:,} numbers, four times as many, each as a grey."),
        GREY: mark("You see {seen:,} numbers, one for each pixel."),
        COLOURS: mark("You see {seen:,} numbers, three for each pixel: red, green and blue."),
    }
    return say(words[stage], seen=count)


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
    """A name to guess.

    Attributes:
        name: of the image, for the program.
        title: of the image, for people.
        tried: whether it was guessed.
        right: whether it is right.
    """

    name: str
    title: str
    tried: bool
    right: bool


@dataclass(frozen=True, eq=False, slots=True)
class RiddleView:
    """Visible part of a riddle.

    Attributes:
        stage: one of `_STAGES`.
        levels: of `levels_at`.
        picture: of `picture_at`.
        guesses: names to choose from; none for an image of the session's own.
        says: result of the guesses, in words.
        has_another: whether there is another riddle.
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
    """Show the riddle; hidden pixels and the right answer do not leave the server.

    Every guess is received, however quickly the next one follows.

    Args:
        view: the visible part.
        on_uncover: gets the next stage.
        on_guess: gets the guessed name.
        on_another: called for another riddle.
        key: of the component.
    """
    names = {each.name for each in view.guesses if not each.tried}

    def did(sent: object) -> None:
        match sent:
            case {"stage": int(stage)} if stage in _STAGES:
                on_uncover(stage)
            case {"guess": str(name)} if name in names and view.stage < COLOURS:
                on_guess(name)
            case {"another": True} if view.has_another:
                on_another()

    is_over = view.stage == COLOURS
    data = {
        "stage": view.stage,
        "levels": view.levels,
        "guesses": [
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


_STATE = re.compile(r"([a-z-]{1,40}) ([0-4]) ([0-4])((?: [a-z-]{1,40}){0,4})")
_OWN = "own"  # the link's word for an image of the session's own, which has no names to guess


@dataclass(frozen=True, slots=True)
class _Guessing:
    """Stage of an image, the stage of the last guess, and the guesses."""

    stage: int = NUMBERS
    guessed_at: int = NUMBERS
    guesses: tuple[str, ...] = ()


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the riddle; the link has its stage and the guesses."""
    image = chosen_sample().name if shows_sample() else _OWN
    so_far, side = _so_far(key, image), int(options["side"])
    names = offered(image) if image != _OWN else ()
    remember_options(key, {UNCOVERED: str(so_far.stage)}, {UNCOVERED: str(NUMBERS)})

    def keep(stage: int, guessed_at: int, *guesses: str) -> None:
        pick(key, "riddle", " ".join((image, str(stage), str(guessed_at), *guesses)))

    # Each counts from the link, which a quick click has changed before this run.
    def uncover(stage: int) -> None:
        now = _so_far(key, image)
        keep(stage, now.guessed_at, *now.guesses)

    def guess(name: str) -> None:
        now = _so_far(key, image)
        if image in now.guesses or name in now.guesses:
            return
        stage = COLOURS if name == image else now.stage
        keep(stage, now.stage, *now.guesses, name)

    def another() -> None:
        known = [each.name for each in samples()]
        at = known.index(image) if image in known else -1
        pick(key, "riddle", "")
        choose_sample(known[(at + 4) % len(known)])  # with other names to guess

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
    is_open = "hv-riddle-open" if so_far.stage < COLOURS else ""
    st.html(f'<span class="{is_open}"></span>')  # hides its thumbnail in the sidebar


def _so_far(key: str, image: str) -> _Guessing:
    match = _STATE.fullmatch(picked(key, "riddle", ""))
    if match is None or match[1] != image:  # of another image
        return _Guessing()
    return _Guessing(int(match[2]), int(match[3]), tuple(match[4].split()))


def _says(scene: LessonScene, so_far: _Guessing, image: str, side: int) -> str:
    """Return the result of the guesses, in words."""
    whole = _count(scene, COLOURS, side)
    if image in so_far.guesses:
        return say(
            "Right: {title}. You needed {few:,} of {total:,} numbers. Guesses: {tries}.",
            title=say(chosen_sample().title),
            few=_count(scene, so_far.guessed_at, side),
            total=whole,
            tries=len(so_far.guesses),
        )
    if so_far.stage == COLOURS:
        if image == _OWN:
            return say("All {total:,} numbers are uncovered.", total=whole)
        title = say(chosen_sample().title)
        return say("It is: {title}. All {total:,} numbers are uncovered.", title=title, total=whole)
    if so_far.guesses:
        titles = {each.name: say(each.title) for each in samples()}
        return say("Not it: {title}.", title=titles.get(so_far.guesses[-1], so_far.guesses[-1]))
    return ""
